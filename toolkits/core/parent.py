"""What a process asks of the kernel about its relatives. Standard library only: another Python may import it."""

import ctypes
import signal
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def die_with_parent(sig: signal.Signals = signal.SIGKILL) -> None:
    """Ask the kernel to end this process when the one that started it ends, however it ends."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(sig), 0, 0, 0)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends: nothing that was started here gets lost."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children(pid: int) -> set[int]:
    """The processes that any thread of `pid` started or adopted; none once it has ended."""
    found: set[int] = set()
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            found |= {int(child) for child in thread.read_text(encoding="utf-8").split()}
    return found
