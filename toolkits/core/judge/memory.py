"""How much memory a worker holds, and when that is too much: its pages, its files without a name, its box's folders.

Where the machine runs short though this worker is within its bounds, others are to blame, and that is said.
"""

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path

from toolkits.core.causes import Cause
from toolkits.core.errors import HarnessError

MOST_BYTES = 16 << 30
LEAST_BYTES = 1 << 30
"""Torch alone takes a third of that."""
LOOK_EVERY_S = 0.05
LAST_BYTES = 256 << 20
"""With less than that available the machine itself is in danger."""


class Ration:
    """What one worker may hold: half of what was available when it met its solution, within bounds."""

    def __init__(self) -> None:
        self._available = available()
        self.limit = max(min(self._available // 2, _room_of_cgroup() // 2, MOST_BYTES), LEAST_BYTES)
        self._next_look = 0.0
        self._least = 0
        """Bytes that were available when the machine ran short."""
        self._killed_before = _killed_by_kernel()

    def due(self) -> bool:
        """Whether it is time to look again."""
        now = time.monotonic()
        if now < self._next_look:
            return False
        self._next_look = now + LOOK_EVERY_S
        return True

    def in_doubt(self, stored: int) -> bool:
        """Whether so much is stored, or of the machine's memory gone by now, that it is worth asking who holds what."""
        left = available()
        return left < LAST_BYTES or max(self._available - left, stored) > self.limit // 2

    def excess(self, pids: Iterable[int], stored: int) -> str:
        """Why these processes and their stored files are too much, in words; empty if they are not."""
        total = sum(held(pid) for pid in pids) + stored
        if total > self.limit:
            return f"the solution holds {_gigabytes(total)} of memory, {_gigabytes(self.limit)} are allowed"
        if (left := available()) < LAST_BYTES:
            self._least = left
            raise HarnessError(
                f"this machine has only {_gigabytes(left)} of memory left, and the solution holds no more than"
                f" {_gigabytes(total)}",
                Cause.OUT_OF_MEMORY,
            )
        return ""

    def hidden(self) -> str:
        """Why a worker that has just ended is to blame for a machine that ran short: what came back with its end.

        Pipes and sockets are full of memory that is no process's in any file of the kernel's.
        """
        back = available() - self._least
        return f"the solution held {_gigabytes(back)} of memory in the kernel" if back > self.limit // 2 else ""

    def killed_by_kernel(self) -> bool:
        """Whether the kernel has ended any process for want of memory since the start."""
        return _killed_by_kernel() > self._killed_before


def held(pid: int) -> int:
    """Bytes of a process: its own pages, and the larger of what it maps and what it keeps open of shared memory."""
    pages = {"RssAnon": 0, "RssFile": 0, "RssShmem": 0}
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines():
            name, _, rest = line.partition(":")
            if name in pages:
                pages[name] = int(rest.split()[0]) * 1024
    return pages["RssAnon"] + pages["RssFile"] + max(pages["RssShmem"], _in_open_files(pid))


def _in_open_files(pid: int) -> int:
    """Bytes of the anonymous memory files that a process has open."""
    found: dict[int, int] = {}
    with suppress(OSError):
        for opened in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                seen = opened.stat()
                if seen.st_dev == _device_of_memory_files():
                    found[seen.st_ino] = seen.st_blocks * 512
    return sum(found.values())


@cache
def _device_of_memory_files() -> int:
    """What tells them from files of a folder; shared mappings without a file lie there too."""
    fd = os.memfd_create("which")
    try:
        return os.fstat(fd).st_dev
    finally:
        os.close(fd)


def available() -> int:
    """Bytes that the machine could give without swapping."""
    with Path("/proc/meminfo").open(encoding="ascii") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    return MOST_BYTES


def _room_of_cgroup() -> int:
    """What a container's limit leaves; very much where there is none."""
    with suppress(OSError, ValueError):
        folder = Path("/sys/fs/cgroup")
        most, now = (int((folder / name).read_text(encoding="ascii")) for name in ("memory.max", "memory.current"))
        return max(most - now, 0)
    return 1 << 62


def _killed_by_kernel() -> int:
    with suppress(OSError):
        for line in Path("/proc/vmstat").read_text(encoding="ascii").splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0


def _gigabytes(count: int) -> str:
    return f"{count / (1 << 30):.1f} GiB"
