"""The C++ compiler of this machine, and what it may use of it."""

import os
import shutil
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from toolkits.core import process, sandbox
from toolkits.core.errors import ToolkitUnavailable

MEMORY_LIMIT_BYTES = 8_000_000_000
OUTPUT_LIMIT_BYTES = 500_000_000


class Compiler:
    """CXX, else g++, else clang++."""

    def __init__(self) -> None:
        self._versions: dict[tuple[str, int], str] = {}

    def missing(self) -> str:
        return "" if _path() else "a C++ compiler: `apt install g++`, or set CXX to g++ or clang++"

    def path(self) -> str:
        """Full path of the compiler."""
        path = _path()
        if not path:
            raise ToolkitUnavailable(f"this machine lacks {self.missing()}")
        return path

    async def version(self) -> str:
        """First line of `--version`; asked once for each compiler file."""
        path = self.path()
        key = (path, Path(path).stat().st_mtime_ns)
        if key not in self._versions:
            done = await process.run([path, "--version"], cwd=Path("/"), timeout_s=10, env=environment(Path("/tmp")))
            self._versions[key] = done.output.partition("\n")[0].strip()
        return self._versions[key]


def environment(scratch: Path) -> dict[str, str]:
    """All that a compiler sees of this process's environment."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C", "TMPDIR": str(scratch)}


def limits() -> list[str]:
    """Command prefix: a source can make the compiler fill memory or disk; util-linux can stop that."""
    prlimit = shutil.which("prlimit")
    return [prlimit, f"--as={MEMORY_LIMIT_BYTES}", f"--fsize={OUTPUT_LIMIT_BYTES}", "--"] if prlimit else []


def binutils(program: str) -> str:
    """Full path of a part of binutils, which gcc and clang both need."""
    path = shutil.which(program)
    if not path:
        raise ToolkitUnavailable(f"this machine lacks {program}: `apt install binutils`")
    return path


def name_inside(work: Path) -> Path:
    """What the enclosed compiler calls the folder it works in."""
    return Path("/build") if sandbox.mechanism().bwrap else work


def enclosed(command: Sequence[str], work: Path, cwd: str, visible: Sequence[str] = ()) -> list[str]:
    """The command where it sees itself, `visible` and `work` alone, if boxes can be built.

    Else an `#include` of a private file would show its first line in the compiler's error.
    """
    bwrap = sandbox.mechanism().bwrap
    if not bwrap:
        return [*limits(), *command]
    wanted = [one for one in visible if not any(Path(one).is_relative_to(seen) for seen in sandbox.SYSTEM)]
    visible = list(dict.fromkeys([*sandbox.installation(command[0]), *wanted]))
    inside = str(name_inside(work))
    boxed = sandbox.enclosed(bwrap, command, visible=visible, writable={str(work): inside}, cwd=f"{inside}/{cwd}")
    return [*limits(), *boxed]


@cache
def cpu() -> str:
    """Model and features of this CPU: what `-march=native` means here."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return "\n".join(sorted({line for line in lines if line.startswith(("model name", "flags"))}))


def _path() -> str | None:
    names = [os.environ["CXX"]] if os.environ.get("CXX") else ["g++", "clang++"]
    return next((path for name in names if (path := shutil.which(name))), None)
