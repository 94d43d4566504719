"""What this machine is, and the figures that were measured of it, kept for this user. Measures nothing itself.

They lie beside the device's lease: a machine that was started anew, or moved to another host, is measured anew.
"""

import hashlib
import os
import platform
import tempfile
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from toolkits.core.schema import Speeds


def own_folder() -> Path:
    """Machine-wide, for this user: two workspaces share the core they time on."""
    folder = Path(tempfile.gettempdir()) / f"kernel-lab-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def cpu() -> tuple[str, set[str]]:
    """Model and feature flags."""
    model, flags = platform.processor() or platform.machine(), set[str]()
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                model = value.strip()
            elif name.strip() in ("flags", "Features"):
                flags |= set(value.split())
    return model, flags


def machine() -> str:
    """What stored figures belong to."""
    return f"{cpu()[0]}, {os.cpu_count()} cores, kernel {platform.release()}"


def stored(name: str, folder: Path | None = None) -> Speeds | None:
    """The figures of the machine of that name; None when there are none that can be trusted."""
    with suppress(OSError, ValidationError):
        file = _file(name, folder)
        if file.stat().st_uid == os.getuid():
            speeds = Speeds.model_validate_json(file.read_bytes())
            return speeds if speeds.machine == name else None
    return None


def store(speeds: Speeds, folder: Path | None = None) -> None:
    """Keep the figures for the next start; where nothing can be written they are measured again then."""
    with suppress(OSError):
        file = _file(speeds.machine, folder)
        draft = file.with_suffix(f".{os.getpid()}")
        draft.write_text(speeds.model_dump_json(indent=2), encoding="utf-8")
        draft.replace(file)


def _file(name: str, folder: Path | None) -> Path:
    return (folder or own_folder()) / f"speeds-{hashlib.sha256(name.encode()).hexdigest()[:16]}.json"
