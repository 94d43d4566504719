"""The machine around one evaluation: what else ran, what slowed the core down. Says so where the system hides a figure.

Reads a few files before and after, well under a millisecond in all; knows no solution and no result.
"""

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from toolkits.core.judge.procfs import (
    CPU,
    TICK_S,
    UNKNOWN,
    Core,
    Switches,
    boost,
    bracketed,
    cores,
    governor,
    mhz,
    siblings,
    switches,
    text_of,
    throttled,
    used_s,
)

STEAL_LIMIT, SIBLING_LIMIT, OTHERS_LIMIT = 0.02, 0.2, 0.1
"""Shares of the evaluation's wall time above which a warning is due."""
LEAST_TICKS = 2
"""Of what the kernel counts in steps of mostly 10 ms, so many say more than that a step was crossed."""
HUGE_PAGES = "/sys/kernel/mm/transparent_hugepage/enabled"


@dataclass(frozen=True)
class Snapshot:
    """All that is compared over an evaluation."""

    at_s: float
    cores: dict[int, Core]
    mhz: str
    throttled: int | None
    ours_s: dict[int, float]
    """CPU seconds used by each process of the evaluation."""


class Host:
    """Watches one core from the beginning of an evaluation to its report."""

    def __init__(self, core: int, workers: Iterable[int] = ()) -> None:
        """`workers` are the processes that run already: their time is no stranger's, nor is the judge's own."""
        self._core = core
        self._siblings = siblings(text_of(f"{CPU}/cpu{core}/topology/thread_siblings_list"), core)
        self._candidate = 0
        self._switches: Switches | None = None
        self._before = self._snapshot(workers)

    def follow(self, candidate: int) -> None:
        """From here on the switches and faults of this process count."""
        self._candidate, self._switches = candidate, switches(candidate)

    def report(self, workers: Iterable[int] = ()) -> tuple[dict[str, str], list[str]]:
        """The record, and what about it makes latencies doubtful; `workers` are the processes that run now."""
        now = self._snapshot(workers)
        load = text_of("/proc/loadavg").split()
        shares = shares_between(self._before, now, self._core, self._siblings)
        record = {
            "pinned_core": str(self._core),
            "load": " ".join(load[:3]) or UNKNOWN,
            "runnable": load[3].partition("/")[0] if len(load) > 3 else UNKNOWN,
            "frequency_mhz": f"{self._before.mhz} before, {now.mhz} after",
            "governor": governor(self._core),
            "boost": boost(),
            "huge_pages": bracketed(text_of(HUGE_PAGES)),
            **self._candidate_record(),
            **shares.record(),
        }
        return record, shares.warnings() + busy_warning(load[0] if load else "", os.cpu_count() or 1)

    def _candidate_record(self) -> dict[str, str]:
        after = switches(self._candidate) if self._candidate else None
        if not self._switches or not after:
            what = UNKNOWN if self._candidate else "not timed"
            return {"context_switches": what, "page_faults": what}
        spent = after.since(self._switches)
        return {
            "context_switches": f"{spent.voluntary} voluntary, {spent.forced} forced",
            "page_faults": f"{spent.minor} minor, {spent.major} major",
        }

    def _snapshot(self, workers: Iterable[int]) -> Snapshot:
        return Snapshot(
            at_s=time.monotonic(),
            cores=cores(text_of("/proc/stat"), {self._core, *self._siblings}),
            mhz=mhz(self._core),
            throttled=throttled(self._core),
            ours_s={pid: used for pid in (os.getpid(), *workers) if (used := used_s(pid)) is not None},
        )


@dataclass(frozen=True)
class Shares:
    """Parts of an evaluation's wall time, 0 to 1; None where the system does not say."""

    core: int
    siblings: list[int]
    stolen: float | None
    others: float | None
    """The pinned core with processes that are no part of the evaluation."""
    sibling: float | None
    """The busiest of the threads that share the core."""
    throttled: int | None
    """How many times the core was slowed down for heat or power."""

    def record(self) -> dict[str, str]:
        threads = ", ".join(map(str, self.siblings))
        return {
            "steal": _percent(self.stolen),
            "others_on_core": _percent(self.others),
            "smt_sibling": f"{threads}: busy {_percent(self.sibling)}" if self.siblings else "none",
            "throttled": UNKNOWN if self.throttled is None else f"{self.throttled} times",
        }

    def warnings(self) -> list[str]:
        found: list[str] = []
        if self.throttled:
            found.append(f"core {self.core} was throttled {self.throttled} times: let it cool down and measure again")
        if (self.stolen or 0.0) > STEAL_LIMIT:
            found.append(f"the hypervisor took core {self.core} away for {_percent(self.stolen)} of the time")
        if (self.others or 0.0) > OTHERS_LIMIT:
            found.append(f"other processes ran on core {self.core} for {_percent(self.others)} of the time")
        if (self.sibling or 0.0) > SIBLING_LIMIT:
            found.append(f"the other thread of core {self.core} was busy for {_percent(self.sibling)} of the time")
        return found


def shares_between(before: Snapshot, now: Snapshot, core: int, threads: list[int]) -> Shares:
    """What happened to a core and to the threads that share it."""
    seconds = max(now.at_s - before.at_s, TICK_S)
    spent = {cpu: now.cores[cpu].since(before.cores[cpu]) for cpu in now.cores if cpu in before.cores}
    ours = sum(used - before.ours_s.get(pid, 0.0) for pid, used in now.ours_s.items()) / TICK_S
    known = core in spent
    unknown = before.throttled is None or now.throttled is None
    return Shares(
        core=core,
        siblings=threads,
        stolen=_share(spent[core].stolen, seconds) if known else None,
        others=_share(spent[core].busy - ours, seconds) if known else None,
        sibling=max((_share(spent[cpu].busy, seconds) for cpu in threads if cpu in spent), default=None),
        throttled=None if unknown else (now.throttled or 0) - (before.throttled or 0),
    )


def busy_warning(load: str, count: int) -> list[str]:
    """Of the load of the last minute, which one evaluation alone cannot raise above the number of cores."""
    with suppress(ValueError):
        if float(load) > count:
            return [f"load {load} on {count} cores: more wants to run than there is room for"]
    return []


def _share(ticks: float, seconds: float) -> float:
    return min(ticks * TICK_S / seconds, 1.0) if ticks >= LEAST_TICKS else 0.0


def _percent(share: float | None) -> str:
    return UNKNOWN if share is None else f"{share:.0%}"
