"""Devices of this machine, and their exclusive use across processes.

The lease is a file lock: the kernel drops it when its holder dies, however it dies, so no lease is ever stale.
"""

import fcntl
import os
import platform
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio

from toolkits.core.schema import Device

POLL_S = 0.005
FEATURES = ("avx2", "fma", "avx512f", "avx512_bf16", "amx_tile", "neon", "sve")


def _lock_path(device: str) -> Path:
    """Machine-wide, since two workspaces share the core they time on."""
    folder = Path(tempfile.gettempdir()) / f"kernel-lab-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder / f"{device}.lease"


@asynccontextmanager
async def lease(device: str = "cpu") -> AsyncGenerator[None]:
    """Exclusive use of a device for timing, over all servers of this user on this machine."""
    with _lock_path(device).open("w") as file:
        while not _taken(file.fileno()):
            await anyio.sleep(POLL_S)
        yield


def _taken(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _busy(device: str) -> bool:
    with _lock_path(device).open("w") as file:
        return not _taken(file.fileno())


def devices() -> list[Device]:
    """What kernels can run on here."""
    model, flags = platform.processor() or platform.machine(), set[str]()
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                model = value.strip()
            elif name.strip() in ("flags", "Features"):
                flags |= set(value.split())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    cores = len(os.sched_getaffinity(0))
    features = [feature for feature in FEATURES if feature in flags]
    return [
        Device(
            name="cpu",
            kind="cpu",
            description=model,
            cores=cores,
            memory_gb=round(memory, 1),
            features=features,
            busy=_busy("cpu"),
        )
    ]
