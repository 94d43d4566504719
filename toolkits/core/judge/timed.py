"""The pairs of one workload and what they show: times, ratios, doubts. Knows no process, no memory and no request."""

import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, TypeVar

from toolkits.core.judge import timing
from toolkits.core.judge.calls import (
    asking_ns,
    blocked_share,
    claimed_ns,
    seen_ns,
    usual_idle_ns,
    wall_ns,
    worked_before_ns,
)
from toolkits.core.judge.clocks import Spent
from toolkits.core.judge.floor import Floor
from toolkits.core.schema import Cold, Interval, Measurement, Status, Verdict, Workload

BLOCKED_LIMIT = 0.33
CLAIM_SLACK_NS, CLAIM_SLACK = 30_000, 0.01
"""A worker's own clock is used while what it leaves unexplained stays below the larger of these, ns and share."""
CLAIM_DOUBT = 0.25
"""Of a kernel's time: with more than this in doubt neither faster nor slower is said."""
CLAIM_FLOOR_NS = 3_000
"""What the judge's clock cannot see at all."""
CHARGE_FLOOR_NS, CHARGE_SHARE = 8_000, 0.03
"""More than the smaller of these unexplained in the usual call is added to all; less is doubt: processes differ so."""
CLAIM_LIE_NS, CLAIM_LIE = 200_000, 0.2
IDLE_LIE_NS = 200_000
"""CPU time between two calls that a waiting process cannot have used."""


T = TypeVar("T")


def _once(figure: "Callable[[Timed], T]") -> "Callable[[Timed], T]":
    """A figure of the pairs there are, worked out once: each is part of several others."""

    @wraps(figure)
    def known(timed: "Timed") -> T:
        if figure.__name__ not in timed.known:
            timed.known[figure.__name__] = figure(timed)
        return timed.known[figure.__name__]

    return known


@dataclass
class Timed:
    """The pairs of one workload."""

    workload: Workload
    floor: Floor | None = None
    has_plan: bool = False
    """Whether the task has a plan step, taken by either side or not."""
    candidate: list[Spent] = field(default_factory=list[Spent])
    baseline: list[Spent] = field(default_factory=list[Spent])
    aa: list[float] = field(default_factory=list[float])
    checked: int = 0
    cold: list[tuple[Spent, Spent]] = field(default_factory=list[tuple[Spent, Spent]])
    """Candidate and baseline with empty caches."""
    known: dict[str, Any] = field(default_factory=dict[str, Any])
    """Figures of these pairs by name, as far as they were asked for."""

    @property
    def pairs(self) -> int:
        return len(self.candidate)

    @property
    @_once
    def ratios(self) -> list[float]:
        """Baseline time over candidate time, a pair each; of plan and run together."""
        return self.doubted() if self.too_short() else self._ratios(0.0)

    @property
    def run_ratios(self) -> list[float]:
        """The same of the runs alone."""
        runs = [self._run_times(side) for side in (self.baseline, self.candidate)]
        hidden_ns = self._hidden_ns() if self._hidden_ns() > CLAIM_DOUBT * statistics.median(runs[1]) else 0.0
        return [b / (c + hidden_ns) for b, c in zip(*runs, strict=True)]

    @_once
    def doubted(self) -> list[float]:
        """The same if the candidate also needed what the judge's clock cannot rule out."""
        return self._ratios(self._hidden_ns())

    @_once
    def too_short(self) -> bool:
        """Whether what the judge's clock cannot rule out is a large part of the kernel: no claim can be borne out."""
        return self._hidden_ns() > CLAIM_DOUBT * statistics.median(self._candidate_ns())

    def _ratios(self, hidden_ns: float) -> list[float]:
        times = zip(self._baseline_ns(), self._candidate_ns(), strict=True)
        return [b / (c + hidden_ns) for b, c in times]

    @_once
    def _candidate_ns(self) -> list[float]:
        return self._times(self.candidate)

    @_once
    def _baseline_ns(self) -> list[float]:
        return self._times(self.baseline)

    @_once
    def _asking_ns(self) -> float:
        return asking_ns(self.baseline)

    @_once
    def _hidden_ns(self) -> float:
        """What the candidate may hide: the judge's clock knows it no better than this."""
        if not self.claims_hold():
            return CLAIM_SLACK_NS
        return min(max(self.unclaimed_ns(), CLAIM_FLOOR_NS), self._free_ns())

    def _times(self, spent: list[Spent]) -> list[float]:
        """CPU times in ns: the worker's own clock where the judge's clock bears it out in that call, else the judge's.

        What a candidate leaves unexplained in its usual call is added to all of them.
        """
        asking, idle = self._asking_ns(), usual_idle_ns(self.baseline)
        added = self.charge_ns() if spent is not self.baseline else 0.0
        claims = [claimed_ns(s) + added for s in spent]
        seen = [seen_ns(s, asking) + worked_before_ns(s, idle) for s in spent]
        return [c if s - c <= _slack_ns(s) else s for c, s in zip(claims, seen, strict=True)]

    @_once
    def charge_ns(self) -> float:
        """What is added to each of the candidate's times."""
        usual = self.unclaimed_ns()
        return usual if usual > self._free_ns() else 0.0

    def _free_ns(self) -> float:
        """What a call may leave unexplained and is not charged for."""
        share = CHARGE_SHARE * statistics.median(map(claimed_ns, self.candidate))
        return max(CLAIM_FLOOR_NS, min(CHARGE_FLOOR_NS, share))

    @_once
    def claimed_ratios(self) -> list[float]:
        """As the workers' own clocks have it: what is not slower by these is not called slower for a charge."""
        return [claimed_ns(b) / claimed_ns(c) for b, c in zip(self.baseline, self.candidate, strict=True)]

    def _run_times(self, spent: list[Spent]) -> list[float]:
        return self._times([replace(s, plan=None) for s in spent])

    def _plan_us(self, spent: list[Spent]) -> float | None:
        """The plans' part of the times, and nothing for a solution without; None where there is no such step."""
        plans = [s.plan for s in spent if s.plan]
        return (_median_us(self._times(plans)) if plans else 0.0) if self.has_plan else None

    @_once
    def unclaimed_ns(self) -> float:
        """CPU time a call that the candidate used and did not claim, beyond what asking costs the baseline."""
        return asking_ns(self.candidate) - self._asking_ns() + self._unclaimed_plan_ns()

    def _unclaimed_plan_ns(self) -> float:
        """The same of the plan, and of the time between its answer and the run, where a process has nothing to do."""
        plans = [s.plan for s in self.candidate if s.plan]
        if not plans:
            return 0.0
        others = [s.plan for s in self.baseline if s.plan] or self.baseline
        idle = [statistics.median(s.idle_ns for s in side) for side in (self.candidate, self.baseline)]
        return max(asking_ns(plans) - asking_ns(others), 0.0) + max(idle[0] - idle[1], 0.0)

    @_once
    def claims_hold(self) -> bool:
        return self.unclaimed_ns() <= _slack_ns(self._outer_ns())

    def claims_lie(self) -> bool:
        """Whether the candidate used so much more than it claimed that its clock was tampered with or outlived."""
        return self.unclaimed_ns() > max(CLAIM_LIE_NS, CLAIM_LIE * self._outer_ns())

    def _outer_ns(self) -> float:
        return statistics.median(sum(each.outer_ns for each in s.requests) for s in self.candidate)

    def add(self, candidate: Spent, baseline: Spent, twin: Spent | None) -> None:
        self.known.clear()
        self.candidate.append(candidate)
        self.baseline.append(baseline)
        if twin:
            self.aa.append(claimed_ns(baseline) / claimed_ns(twin))

    @_once
    def speedup(self) -> Interval:
        return timing.interval(self.ratios)

    @_once
    def aa_factor(self) -> float:
        return timing.aa_factor(self.aa)

    @_once
    def verdict(self) -> Verdict:
        if self.clocks_disagree() or self.too_short():
            return Verdict.INCONCLUSIVE
        found = timing.verdict(self.speedup(), self.aa_factor())
        doubtful = found is Verdict.FASTER and timing.interval(self.doubted()).low <= 1.0
        if found is Verdict.SLOWER and self.charge_ns():
            doubtful = timing.interval(self.claimed_ratios()).high >= 1.0
        return Verdict.INCONCLUSIVE if doubtful else found

    def decided(self) -> bool:
        return self.verdict() is not Verdict.INCONCLUSIVE

    def blocked_shares(self) -> list[float]:
        """Ascending shares of a call's wall time in which nobody ran or waited for a core; the larger of plan and run.

        On a busy machine single calls show such time; work that is done elsewhere shows it in every call. What a
        wake-up alone may take counts as none.
        """
        return sorted(max(map(blocked_share, s.requests)) for s in self.candidate)

    def below_floor(self) -> bool:
        """Whether the candidate claims what no kernel can do; a floor that the baseline breaks too is a wrong one."""
        return bool(self.floor) and self._claim_us() < self.floor.least_us and not self.floor_is_wrong()

    def floor_is_wrong(self) -> bool:
        """Whether the task's own baseline does with less than the task says is needed."""
        return bool(self.floor) and statistics.median(self._baseline_ns()) / 1e3 < self.floor.least_us

    def below_floor_evidence(self) -> str:
        return self.floor.evidence(self._claim_us()) if self.floor else ""

    def _claim_us(self) -> float:
        return statistics.median(map(claimed_ns, self.candidate)) / 1e3

    def _latency_us(self) -> float:
        return statistics.median(self._candidate_ns()) / 1e3

    def idle_ns(self) -> float:
        """CPU time before a plan or a run, median, beyond the baseline's: a process that waits for a request uses none.

        On a busy machine going to sleep after an answer may itself take some ten microseconds, for both.
        """
        return usual_idle_ns(self.candidate) - usual_idle_ns(self.baseline)

    def clocks_disagree(self) -> bool:
        """Whether half of the calls show it: CPU time then proves nothing."""
        return statistics.median(self.blocked_shares()) > BLOCKED_LIMIT

    def measurement(self) -> Measurement:
        return Measurement(
            workload=self.workload.uuid,
            axes=self.workload.axes,
            status=Status.PASSED,
            cause="clock_mismatch" if self.clocks_disagree() else "",
            latency_us=_median_us(self._candidate_ns()),
            baseline_us=_median_us(self._baseline_ns()),
            wall_us=_median_us(wall_ns(s, self._asking_ns()) for s in self.candidate),
            baseline_wall_us=_median_us(wall_ns(s, self._asking_ns()) for s in self.baseline),
            floor_us=float(f"{self.floor.us:.4g}") if self.floor else None,
            floor_share=float(f"{self.floor.us / self._latency_us():.3g}") if self.floor else None,
            speedup=self.speedup(),
            plan_us=self._plan_us(self.candidate),
            baseline_plan_us=self._plan_us(self.baseline),
            run_only=timing.interval(self.run_ratios) if self.has_plan else None,
            aa_factor=self.aa_factor(),
            verdict=self.verdict(),
            pairs=self.pairs,
            checked=self.checked,
            cold=self._cold(),
        )

    def _cold(self) -> Cold | None:
        """Speed with empty caches, by the judge's clock alone: no claim of the candidate is believed here."""
        if not self.cold:
            return None
        asking = self._asking_ns()
        times = [[seen_ns(s, asking) for s in pair] for pair in self.cold]
        ratios = [baseline / candidate for candidate, baseline in times]
        return Cold(
            latency_us=_median_us(candidate for candidate, _ in times),
            baseline_us=_median_us(baseline for _, baseline in times),
            speedup=timing.interval(ratios) if len(ratios) >= timing.CHECKPOINTS[0] else None,
            ratio=statistics.median(ratios),
            pairs=len(ratios),
        )


def _slack_ns(seen_ns: float) -> float:
    return max(CLAIM_SLACK_NS, CLAIM_SLACK * seen_ns)


def _median_us(nanoseconds: Iterable[float]) -> float:
    return round(statistics.median(nanoseconds) / 1e3, 2)
