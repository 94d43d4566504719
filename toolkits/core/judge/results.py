"""From what was measured or refused to a BenchmarkResult. Knows no process and no memory."""

import statistics

from toolkits.core.causes import hint
from toolkits.core.judge import timing
from toolkits.core.judge.request import EvaluationRequest
from toolkits.core.judge.timed import Timed
from toolkits.core.schema import BenchmarkResult, Stage, Status, Verdict

CLOCK = "CPU time by the worker's clock, borne out by the judge's clock of that process; wall clock beside it"
REGIME = "run_only, warm cache: one call, outputs preallocated; no plan step, so plan included is the same"
REGIME_WITH_PLAN = (
    "plan_run, warm cache: speedup, latencies and verdict are of one plan and one run together, both on new content, "
    "outputs preallocated; run_only is of the runs alone"
)


Surroundings = tuple[dict[str, str], list[str]]
"""The machine during an evaluation, and what about it makes latencies doubtful."""


class Rejected(Exception):
    """The candidate did not pass: status, stage, cause code, and what was seen where."""

    def __init__(self, status: Status, stage: Stage, cause: str, detail: str, workload: str = "") -> None:
        super().__init__(detail)
        self.status, self.stage, self.cause, self.detail, self.workload = status, stage, cause, detail, workload


def passed(
    request: EvaluationRequest,
    rounds: int,
    timed: list[Timed],
    spent: tuple[float, dict[str, float]],
    surroundings: Surroundings,
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
        host=surroundings[0],
        not_timed=request.candidate_build.not_timed if request.mode == "full" else "",
        warnings=surroundings[1] + [_wrong_floor(t) for t in timed if t.floor_is_wrong()],
    )
    if not timed:
        return common
    return common.model_copy(update=_speed(timed))


def _wrong_floor(timed: Timed) -> str:
    return (
        f"the baseline does {timed.workload.uuid} in less than half of what the task's `work` needs: correct it in "
        "task.yaml; until then no latency of this workload is held against it"
    )


def _speed(timed: list[Timed]) -> dict[str, object]:
    measurements = [t.measurement() for t in timed]
    speedups = {t.workload.uuid: t.speedup().value for t in timed}
    mean = timing.geometric_mean([t.ratios for t in timed])
    worst = min(speedups, key=lambda uuid: speedups[uuid])
    cold = [measured.cold.ratio for measured in measurements if measured.cold]
    verdict = timing.verdict(mean, max(t.aa_factor() for t in timed))
    doubtful = verdict is Verdict.FASTER and timing.geometric_mean([t.doubted() for t in timed]).low <= 1.0
    if verdict is Verdict.SLOWER and any(t.charge_ns() for t in timed):
        doubtful = timing.geometric_mean([t.claimed_ratios() for t in timed]).high >= 1.0
    short = [t.too_short() for t in timed]  # these look slower than they may be, never faster
    doubtful = doubtful or all(short) or (verdict is Verdict.SLOWER and any(short))
    if doubtful or any(t.clocks_disagree() for t in timed):
        verdict = Verdict.INCONCLUSIVE
    planned = [t.run_ratios for t in timed if t.has_plan]
    return {
        "measurements": measurements,
        "run_only": timing.geometric_mean(planned) if planned else None,
        "verdict": verdict,
        "speedup": mean,
        "arithmetic_mean": statistics.fmean(speedups.values()),
        "worst": speedups[worst],
        "worst_workload": worst,
        "below_one": sum(value < 1.0 for value in speedups.values()),
        "cold_ratio": statistics.geometric_mean(cold) if cold else None,
        "cold_below_one": sum(ratio < 1.0 for ratio in cold),
        "passed": len(measurements),
        "total": len(measurements),
        "clock": CLOCK,
        "regime": REGIME_WITH_PLAN if planned else REGIME,
    }


def failed(request: EvaluationRequest, why: Rejected, surroundings: Surroundings, output: str = "") -> BenchmarkResult:
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
        hint=hint(why.cause),
        workload=why.workload,
        host=surroundings[0],
        warnings=surroundings[1],
        total=len(request.selected()),
    )


def _baseline(request: EvaluationRequest) -> str:
    return f"{request.baseline_name} {request.baseline.id}"
