"""From what was measured or refused to a BenchmarkResult. Knows no process and no memory."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field

from toolkits.core.judge import timing
from toolkits.core.judge.request import EvaluationRequest
from toolkits.core.judge.workers import Spent
from toolkits.core.schema import BenchmarkResult, Interval, Measurement, Stage, Status, Verdict, Workload

BLOCKED_LIMIT = 0.33
BLOCKED_FLOOR_NS = 200_000
CLAIM_SLACK_NS, CLAIM_SLACK = 30_000, 0.01
"""A worker's own clock is used while what it leaves unexplained stays below the larger of these, ns and share."""
CLAIM_DOUBT = 0.25
"""Of a kernel's time: with more than this in doubt neither faster nor slower is said."""
CLAIM_FLOOR_NS = 3_000
"""What the judge's clock cannot see at all."""
CLAIM_LIE_NS, CLAIM_LIE = 200_000, 0.2
CLOCK = "CPU time by the worker's clock, borne out by the judge's clock of that process; wall clock beside it"
REGIME = "run_only, warm cache: one call, outputs preallocated; no plan step, so plan included is the same"
HINTS = {
    "output_not_written": "write every element of every output: before each call they hold NaN, or 0x81 in every byte",
    "nan_in_output": "look for division by zero, exp overflow, or reads of memory that was not set",
    "not_repeatable": "look for a race, or for scratch memory that is used before it is set",
    "time_limit": "the call did not return within the task's limit: look for an endless loop, or a far too slow path",
    "signal_11": "invalid memory access: sizes that are not multiples of the tile, alignment, or a write to an input"
    " (inputs are mapped read-only)",
    "signal_4": "illegal instruction: the code was built for another CPU",
    "signal_6": "abort: a failed assertion, or memory that was freed twice",
    "signal_8": "arithmetic fault: an integer division by zero",
    "out_of_bounds_write": "a tile runs past the end of a tensor: mask the tail",
    "stale_content": "right on first sight, wrong on new content at the same address: nothing may be cached over calls",
    "output_changed_after_return": "finish all work before returning",
    "exception": "the function raised: see detail",
}


class Rejected(Exception):
    """The candidate did not pass: status, stage, cause code, and what was seen where."""

    def __init__(self, status: Status, stage: Stage, cause: str, detail: str, workload: str = "") -> None:
        super().__init__(detail)
        self.status, self.stage, self.cause, self.detail, self.workload = status, stage, cause, detail, workload


@dataclass
class Timed:
    """The pairs of one workload."""

    workload: Workload
    candidate: list[Spent] = field(default_factory=list[Spent])
    baseline: list[Spent] = field(default_factory=list[Spent])
    aa: list[float] = field(default_factory=list[float])
    checked: int = 0

    @property
    def pairs(self) -> int:
        return len(self.candidate)

    @property
    def ratios(self) -> list[float]:
        """Baseline time over candidate time, a pair each."""
        return self.doubted() if self.too_short() else self._ratios(0.0)

    def doubted(self) -> list[float]:
        """The same if the candidate also needed all that its process used and its clock did not show."""
        return self._ratios(self._hidden_ns())

    def too_short(self) -> bool:
        """Whether what the judge's clock cannot rule out is a large part of the kernel: no claim can be borne out."""
        return self._hidden_ns() > CLAIM_DOUBT * statistics.median(self._times(self.candidate))

    def _ratios(self, hidden_ns: float) -> list[float]:
        times = zip(self._times(self.baseline), self._times(self.candidate), strict=True)
        return [b / (c + hidden_ns) for b, c in times]

    def _hidden_ns(self) -> float:
        """What the candidate may hide: the judge's clock knows it no better than this."""
        return max(self.unclaimed_ns(), CLAIM_FLOOR_NS) if self.claims_hold() else CLAIM_SLACK_NS

    def _times(self, spent: list[Spent]) -> list[float]:
        """CPU times in ns: the workers' own clock where the judge's clock bears it out, else the judge's."""
        if self.claims_hold():
            return [float(s.cpu_ns) for s in spent]
        return [max(s.outer_ns - self.asking_ns(self.baseline), 1.0) for s in spent]

    @staticmethod
    def asking_ns(spent: list[Spent]) -> float:
        """What a request costs beside the function: the judge's clock less the worker's, median."""
        return statistics.median(s.outer_ns - s.cpu_ns for s in spent)

    def unclaimed_ns(self) -> float:
        """CPU time a call that the candidate used and did not claim, beyond what asking costs the baseline."""
        return self.asking_ns(self.candidate) - self.asking_ns(self.baseline)

    def claims_hold(self) -> bool:
        return self.unclaimed_ns() <= max(CLAIM_SLACK_NS, CLAIM_SLACK * self._outer_ns())

    def claims_lie(self) -> bool:
        """Whether the candidate used so much more than it claimed that its clock was tampered with or outlived."""
        return self.unclaimed_ns() > max(CLAIM_LIE_NS, CLAIM_LIE * self._outer_ns())

    def _outer_ns(self) -> float:
        return statistics.median(s.outer_ns for s in self.candidate)

    def add(self, candidate: Spent, baseline: Spent, twin: Spent | None) -> None:
        self.candidate.append(candidate)
        self.baseline.append(baseline)
        if twin:
            self.aa.append(baseline.cpu_ns / twin.cpu_ns)

    def speedup(self) -> Interval:
        return timing.interval(self.ratios)

    def aa_factor(self) -> float:
        return timing.aa_factor(self.aa)

    def verdict(self) -> Verdict:
        if self.clocks_disagree() or self.too_short():
            return Verdict.INCONCLUSIVE
        found = timing.verdict(self.speedup(), self.aa_factor())
        doubtful = found is Verdict.FASTER and timing.interval(self.doubted()).low <= 1.0
        return Verdict.INCONCLUSIVE if doubtful else found

    def decided(self) -> bool:
        return self.verdict() is not Verdict.INCONCLUSIVE

    def blocked_shares(self) -> list[float]:
        """Ascending shares of a call's wall time in which nobody ran or waited for a core.

        On a busy machine single calls show such time; work that is done elsewhere shows it in every call. What a
        wake-up alone may take counts as none.
        """
        blocked = [(s.wall_ns - s.outer_ns - s.queued_ns, s.wall_ns) for s in self.candidate]
        return sorted(waited / wall if waited > BLOCKED_FLOOR_NS else 0.0 for waited, wall in blocked)

    def idle_ns(self) -> float:
        """CPU time between calls, median: a process that waits for a request uses none."""
        return statistics.median(s.idle_ns for s in self.candidate)

    def clocks_disagree(self) -> bool:
        """Whether half of the calls show it: CPU time then proves nothing."""
        return statistics.median(self.blocked_shares()) > BLOCKED_LIMIT

    def measurement(self) -> Measurement:
        return Measurement(
            workload=self.workload.uuid,
            axes=self.workload.axes,
            status=Status.PASSED,
            cause="clock_mismatch" if self.clocks_disagree() else "",
            latency_us=_median_us(self._times(self.candidate)),
            baseline_us=_median_us(self._times(self.baseline)),
            wall_us=_median_us(s.wall_ns - self.asking_ns(self.baseline) for s in self.candidate),
            baseline_wall_us=_median_us(s.wall_ns - self.asking_ns(self.baseline) for s in self.baseline),
            speedup=self.speedup(),
            aa_factor=self.aa_factor(),
            verdict=self.verdict(),
            pairs=self.pairs,
            checked=self.checked,
        )


def _median_us(nanoseconds: Iterable[float]) -> float:
    return round(statistics.median(nanoseconds) / 1e3, 2)


def passed(
    request: EvaluationRequest,
    rounds: int,
    timed: list[Timed],
    spent: tuple[float, dict[str, float]],
    host: dict[str, str],
) -> BenchmarkResult:
    """The record of a candidate that is right; with speed when it was timed."""
    common = BenchmarkResult(
        task=request.task.name,
        solution=request.candidate.id,
        mode=request.mode,
        status=Status.PASSED,
        stage=Stage.DONE,
        baseline=_baseline(request),
        rounds=rounds,
        kernel_ms=round(spent[0], 2),
        overhead_ms=spent[1],
        host=host,
    )
    if not timed:
        return common
    return common.model_copy(update=_speed(timed))


def _speed(timed: list[Timed]) -> dict[str, object]:
    measurements = [t.measurement() for t in timed]
    speedups = {t.workload.uuid: t.speedup().value for t in timed}
    mean = timing.geometric_mean([t.ratios for t in timed])
    worst = min(speedups, key=lambda uuid: speedups[uuid])
    verdict = timing.verdict(mean, max(t.aa_factor() for t in timed))
    doubtful = verdict is Verdict.FASTER and timing.geometric_mean([t.doubted() for t in timed]).value <= 1.0
    short = [t.too_short() for t in timed]  # these look slower than they may be, never faster
    doubtful = doubtful or all(short) or (verdict is Verdict.SLOWER and any(short))
    if doubtful or any(t.clocks_disagree() for t in timed):
        verdict = Verdict.INCONCLUSIVE
    return {
        "measurements": measurements,
        "verdict": verdict,
        "speedup": mean,
        "arithmetic_mean": statistics.fmean(speedups.values()),
        "worst": speedups[worst],
        "worst_workload": worst,
        "below_one": sum(value < 1.0 for value in speedups.values()),
        "passed": len(measurements),
        "total": len(measurements),
        "clock": CLOCK,
        "regime": REGIME,
    }


def failed(request: EvaluationRequest, why: Rejected, output: str = "") -> BenchmarkResult:
    """The record of a candidate that did not pass; its printed output is kept as data."""
    detail = why.detail + (f"\nlast output of the solution:\n{output[-1000:]}" if output.strip() else "")
    return BenchmarkResult(
        task=request.task.name,
        solution=request.candidate.id,
        mode=request.mode,
        status=why.status,
        stage=why.stage,
        baseline=_baseline(request),
        cause=why.cause,
        detail=detail,
        hint=HINTS.get(why.cause, ""),
        workload=why.workload,
        total=len(request.task.workloads) if request.mode == "full" else 0,
    )


def _baseline(request: EvaluationRequest) -> str:
    return f"{request.baseline_name} {request.baseline.id}"
