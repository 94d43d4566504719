"""From five re-measures of one candidate to one figure, and whether it may be called a result. Pure functions.

The rule: a claim is promoted when all five re-measures PASSED, the judge itself calls most of them faster, and the 99 %
interval of their geometric mean lies above 1.0. The judge's word counts because it knows what the interval does not:
clocks that disagree, and how far the baseline is from itself. The interval comes from how much the five sessions differ
(Student's t), which is wider than what one session knows of itself; so one lucky session cannot carry a claim.
"""

import math
import statistics
from collections.abc import Sequence
from typing import Literal

from mcp_server.schema import BenchmarkAnswer, WorkloadLine
from supervisor.schema import Evaluation
from toolkits.core.schema import Interval, Record

T_99 = {1: 63.657, 2: 9.925, 3: 5.841, 4: 4.604}
"""Two-sided 99 % quantile of Student's t by degrees of freedom."""


class WorkloadResult(Record):
    """One workload of the final table. Latencies are medians of the re-measures, in microseconds of CPU time."""

    workload: str
    naive_us: float | None
    """The start solution."""
    baseline_us: float | None
    winner_us: float | None
    speedup: Interval | None
    """Baseline over winner."""
    over_naive: float | None
    floor_share: float | None = None
    """The physical floor over the winner's latency; absent where the task states no work."""
    run_only: Interval | None = None
    """Baseline over winner of the runs alone; absent where the task has no plan step."""


def judge(evaluations: Sequence[Evaluation], wanted: int) -> Literal["open", "promoted", "revoked"]:
    """The rule above; open while re-measures are missing and none has failed."""
    if any(not e.timed for e in evaluations):
        return "revoked"
    if len(evaluations) < wanted:
        return "open"
    agreed = sum(e.faster for e in evaluations) >= fewest_faster(len(evaluations))
    interval = combined([e.speedup for e in evaluations if e.speedup])
    return "promoted" if agreed and interval.low > 1 else "revoked"


def fewest_faster(sessions: int) -> int:
    """Most of them."""
    return sessions // 2 + 1


def combined(ratios: Sequence[Interval]) -> Interval:
    """Geometric mean of the sessions with its 99 % interval, never narrower than the narrowest session's own."""
    logs = [math.log(ratio.value) for ratio in ratios]
    mean = statistics.fmean(logs)
    own = min((math.log(r.high / r.low) / 2 for r in ratios), default=0.0) / math.sqrt(len(ratios))
    spread = statistics.stdev(logs) if len(logs) > 1 else 0.0
    half = max(T_99.get(len(logs) - 1, 0.0) * spread / math.sqrt(len(logs)), own)
    return Interval(value=math.exp(mean), low=math.exp(mean - half), high=math.exp(mean + half))


def workload_results(naive: BenchmarkAnswer, answers: Sequence[BenchmarkAnswer]) -> list[WorkloadResult]:
    """The final table's rows, in the task's order. Without re-measures: only naive and baseline."""
    return [
        _row(line, [w for answer in answers for w in answer.workloads if w.workload == line.workload])
        for line in naive.workloads
    ]


def _row(naive: WorkloadLine, measured: Sequence[WorkloadLine]) -> WorkloadResult:
    winner_us = _median([w.latency_us for w in measured])
    ratios = [
        Interval(value=w.speedup, low=w.low, high=w.high)
        for w in measured
        if w.speedup is not None and w.low is not None and w.high is not None
    ]
    runs = [w.run_only for w in measured if w.run_only]
    return WorkloadResult(
        workload=naive.workload,
        naive_us=naive.latency_us,
        baseline_us=_median([w.baseline_us for w in measured]) or naive.baseline_us,
        winner_us=winner_us,
        speedup=combined(ratios) if ratios else None,
        over_naive=naive.latency_us / winner_us if naive.latency_us and winner_us else None,
        floor_share=_median([w.floor_share for w in measured]),
        run_only=combined(runs) if runs else None,
    )


def _median(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None
