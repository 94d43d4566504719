"""What one call of a worker cost, by clocks that the judge reads from outside; knows neither channel nor solution.

CPU time is read by the kernel's clock of the worker's process, wall time by the judge's own clock; what the worker says
of its time is kept beside them as a claim.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

SETTLE_LIMIT_NS = 20_000_000
BLOCKED_FLOOR_NS = 200_000
"""Wall time beside CPU time up to which nobody asks what a process waited for: a wake-up alone may take it."""


@dataclass(frozen=True)
class Spent:
    """What one call cost."""

    cpu_ns: int
    """CPU time of the function alone, by the worker's own clock: a claim, to be believed only beside `outer_ns`."""
    outer_ns: int
    """CPU time of the worker's process for the whole request, read by the judge."""
    wall_ns: int
    """The judge's wall clock for the whole request."""
    queued_ns: int = 0
    """Time in which it, or the judge that waits for its answer, was ready to run but found no free core.

    Read only where more than BLOCKED_FLOOR_NS is unexplained; then it covers all since it was last read.
    """
    idle_ns: int = 0
    """CPU time that the process used since its last call was answered, when it had nothing to do."""
    plan: "Spent | None" = None
    """What the plan before this run cost, where the solution has one; the figures above are the run's alone."""

    @property
    def requests(self) -> "tuple[Spent, ...]":
        """The plan, if there was one, and the run."""
        return (self.plan, self) if self.plan else (self,)


class Clocks:
    """The clocks of one process, open while it lives; each reading raises OSError once it is gone."""

    def __init__(self, pid: int, *, keeps_core: bool) -> None:
        """`keeps_core`: it cannot leave the judge's core, so it does not run when its clocks are read."""
        # The kernel's CPU clock of another process (see clock_getcpuclockid).
        self._cpu = ((~pid) << 3) | 2
        self._keeps_core = keeps_core
        self._stat = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
        self._schedstats = [os.open(f"/proc/{each}/schedstat", os.O_RDONLY) for each in (pid, os.getpid())]
        self._queued_at = self._queued_ns()
        self._answered_at = 0

    def spent(self, ask: Callable[[], dict[str, Any]]) -> Spent:
        """What it cost to ask, and to be answered; and what the process used since it was last asked here."""
        before = time.clock_gettime_ns(self._cpu)
        wall = time.perf_counter_ns()
        answer = ask()
        wall = time.perf_counter_ns() - wall
        if not self._keeps_core:
            self._settle()
        idle = before - self._answered_at
        self._answered_at = time.clock_gettime_ns(self._cpu)
        outer = self._answered_at - before
        return Spent(_claim(answer, outer), outer, wall, self._queued(wall - outer), idle)

    def _queued(self, unexplained_ns: int) -> int:
        if unexplained_ns <= BLOCKED_FLOOR_NS:
            return 0
        before, self._queued_at = self._queued_at, self._queued_ns()
        return self._queued_at - before

    def _settle(self) -> None:
        """Wait until the worker sleeps again: the CPU clock of a process that runs elsewhere is old by up to a tick.

        On the judge's own core it cannot run now; what it does after its answer counts before its next call.
        """
        deadline = time.perf_counter_ns() + SETTLE_LIMIT_NS
        while self._runs_elsewhere() and time.perf_counter_ns() < deadline:
            pass

    def _runs_elsewhere(self) -> bool:
        fields = os.pread(self._stat, 1024, 0).rpartition(b") ")[2].split()
        return fields[0] == b"R" and int(fields[36]) not in os.sched_getaffinity(0)

    def _queued_ns(self) -> int:
        return sum(int(os.pread(fd, 128, 0).split()[1]) for fd in self._schedstats)

    def close(self) -> None:
        for fd in (self._stat, *self._schedstats):
            os.close(fd)


def _claim(answer: dict[str, Any], outer_ns: int) -> int:
    """The worker's own figure, if it can be one: a positive number not above what the judge saw."""
    claim = answer.get("cpu_ns")
    return min(max(claim, 1), outer_ns) if isinstance(claim, int) else outer_ns
