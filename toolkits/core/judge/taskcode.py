"""A time limit for a task's own code that holds in native code too. Knows no task.

The kernel ends the whole judge with SIGALRM, after `faulthandler` has written where it was: nothing in the process can
stop a native loop, and nothing in it could be trusted afterwards. The server reads both and blames the task.
"""

import faulthandler
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager


def expect_hangs() -> None:
    """Have SIGALRM say where the process was before it ends it; once a process."""
    faulthandler.register(signal.SIGALRM, file=sys.stderr, all_threads=False, chain=True)


@contextmanager
def time_limit(seconds: float) -> Generator[None]:
    """End the process if the block takes longer, by a clock that no change of the date moves."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def advice(error: BaseException) -> str:
    """What the author of the task can do about what its code raised; empty when the error says it."""
    text = f"{type(error).__name__} {error}"
    if isinstance(error, MemoryError) or "allocate memory" in text:
        return ": it needs more memory than there is: let it work in pieces, or give the task smaller sizes"
    return ""
