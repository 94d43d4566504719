"""Finding, ending and outliving the judge's processes, for tests that do what a hostile or unlucky machine does."""

import os
import select
import signal
from collections.abc import Sequence
from pathlib import Path

PATIENCE_MS = 20_000


def children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(child) for child in task.read_text(encoding="utf-8").split()]
        except OSError:  # it has ended meanwhile
            continue
    return found


def descendants(pid: int) -> list[int]:
    return [one for child in children(pid) for one in (child, *descendants(child))]


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8")
    except OSError:
        return ""


def zygote_of(judge: int) -> int:
    (zygote,) = [pid for pid in children(judge) if "judge.zygote" in command_line(pid)]
    return zygote


def watched(pids: Sequence[int]) -> list[int]:
    """Descriptors that stay with these very processes, whatever becomes of their numbers."""
    return [os.pidfd_open(pid) for pid in pids]


def all_end(descriptors: Sequence[int]) -> bool:
    """Whether all of them end within the patience; closes the descriptors."""
    ended = [bool(select.select([fd], [], [], PATIENCE_MS / 1e3)[0]) for fd in descriptors]
    for fd in descriptors:
        os.close(fd)
    return all(ended)


def kill(pid: int) -> None:
    """End a process, and wait until it is dead."""
    descriptors = watched([pid])
    os.kill(pid, signal.SIGKILL)
    assert all_end(descriptors)
