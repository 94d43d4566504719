"""What a process asks of the kernel about its relatives. Standard library only: another Python may import it."""

import ctypes
import os
import signal
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_DUMPABLE = 4
_LIBC = ctypes.CDLL(None, use_errno=True)


def die_with_parent(sig: signal.Signals = signal.SIGKILL) -> None:
    """Ask the kernel to end this process when the one that started it ends, however it ends."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, int(sig), 0, 0, 0)


def hide_memory() -> None:
    """Close this process's memory to others of the same user; what it starts by exec is open again."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends: nothing that was started here gets lost."""
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children(pid: int) -> set[int]:
    """The processes that any thread of `pid` started or adopted; none once it has ended."""
    found: set[int] = set()
    with suppress(OSError):
        for thread in os.scandir(f"/proc/{pid}/task"):
            with suppress(OSError):
                found |= {int(child) for child in Path(thread.path, "children").read_bytes().split()}
    return found


def lives(pid: int) -> bool:
    """Whether any of its threads still runs: the first one may have ended, and then the process looks dead."""
    with suppress(OSError):  # it may end while its threads are listed
        for thread in Path(f"/proc/{pid}/task").glob("*/stat"):
            with suppress(OSError):
                if thread.read_text(encoding="utf-8", errors="replace").rpartition(") ")[2][:1] not in "ZX":
                    return True
    return False
