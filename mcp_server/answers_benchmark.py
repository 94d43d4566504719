"""What the judge found, as a caller is shown it: small, and every fact stands alone."""

from collections.abc import Mapping

from mcp_server.excerpts import clip, diagnostic_lines, of_exception
from mcp_server.figures import ratio, rounded, short
from mcp_server.schema import BenchmarkAnswer, WorkloadLine
from toolkits.core.causes import Cause
from toolkits.core.schema import BenchmarkResult, Measurement, Status

MAX_DETAIL = 900
MAX_WORKLOADS = 16
MAX_ADVICE = 3


def explained(result: BenchmarkResult, sources: Mapping[str, str]) -> BenchmarkResult:
    """The result with the source line quoted in which an exception was raised."""
    quoted = of_exception(result.detail, sources) if result.cause == str(Cause.EXCEPTION) else ""
    return result.model_copy(update={"detail": f"{clip(result.detail, MAX_DETAIL)}\n{quoted}"}) if quoted else result


def judged(job: str, result: BenchmarkResult, evaluation: str = "") -> BenchmarkAnswer:
    noise = [abs(m.aa_factor - 1) + 1 for m in result.measurements if m.aa_factor]
    return BenchmarkAnswer(
        job=job,
        kind="benchmark",
        state="done",
        summary=headline(result),
        evaluation=evaluation,
        task=result.task,
        solution=result.solution,
        status=result.status,
        stage=result.stage,
        cause=result.cause,
        detail=clip(result.detail, MAX_DETAIL),
        hint=clip(result.hint, MAX_DETAIL // 2),
        failed_workload=_failed_on(result),
        verdict=result.verdict,
        speedup=rounded(result.speedup),
        run_only=rounded(result.run_only),
        worst=short(result.worst),
        worst_workload=result.worst_workload,
        below_one=result.below_one,
        passed=result.passed,
        total=result.total,
        of_task=result.of_task,
        aa_factor=short(max(noise, default=None)),
        warnings=result.warnings,
        advice=[clip(line, 200) for line in result.advice[:MAX_ADVICE]],
        baseline=result.baseline,
        workloads=[workload_line(m) for m in result.measurements[:MAX_WORKLOADS]],
        more_workloads=max(len(result.measurements) - MAX_WORKLOADS, 0),
        diagnostics=diagnostic_lines(result.diagnostics),
        findings=result.findings,
        log_path=result.log_path,
    )


def headline(result: BenchmarkResult) -> str:
    """The result in one or two sentences."""
    if result.status is not Status.PASSED:
        where = f" on {on}" if (on := _failed_on(result)) else ""
        cause = f" ({result.cause})" if result.cause else ""
        hint = f" Hint: {clip(result.hint, 200)}" if result.hint else ""
        return f"{result.status} at {result.stage}{where}{cause}: {clip(result.detail, 400)}{hint}"
    if result.mode == "sanitize":
        return f"PASSED: nothing found in {result.rounds} rounds under {result.detail}; no value was compared or timed."
    if result.speedup is None:
        timed = f"not timed: {result.not_timed}" if result.not_timed else f"mode {result.mode} does not time"
        return f"PASSED: correct in {result.rounds} rounds; {timed}."
    worst = f"{result.worst:.3g}x on {result.worst_workload}"
    partial = f" asked for, of the task's {result.of_task}" if result.partial else ""
    run_only = f" plan included, {ratio(result.run_only)} run only," if result.run_only else ""
    return (
        f"PASSED, {result.verdict}: {ratio(result.speedup)}{run_only} against {result.baseline.split(' ')[0]} "
        f"over {result.passed} of {result.total} workloads{partial}; worst {worst}; "
        f"{result.below_one} below 1.0."
    )


def workload_line(m: Measurement) -> WorkloadLine:
    return WorkloadLine(
        workload=m.workload,
        status=m.status,
        latency_us=short(m.latency_us),
        baseline_us=short(m.baseline_us),
        speedup=short(m.speedup.value) if m.speedup else None,
        low=short(m.speedup.low) if m.speedup else None,
        high=short(m.speedup.high) if m.speedup else None,
        verdict=m.verdict,
        floor_share=m.floor_share,
        plan_us=short(m.plan_us),
        baseline_plan_us=short(m.baseline_plan_us),
        run_only=rounded(m.run_only),
    )


def _failed_on(result: BenchmarkResult) -> str:
    """Where it failed first: a round with its distribution and axes, or a workload with its axes."""
    named = result.workload.partition(",")[0]
    failed = next((m for m in result.measurements if m.workload == named), None)
    axes = " ".join(f"{name}={size}" for name, size in failed.axes.items()) if failed else ""
    return f"{result.workload} ({axes})" if axes else result.workload
