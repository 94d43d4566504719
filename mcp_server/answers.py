"""From what the lab measured to what a caller is shown: small models in which every fact stands alone.

The whole record stays in the ledger and in the log file; nothing here may grow with the size of a kernel's output.
"""

from typing import TypeVar

from pydantic import ConfigDict

from mcp_server.ledger import EvaluationRow, JobRow
from mcp_server.schema import (
    BenchmarkAnswer,
    CompileAnswer,
    DiagnosticLine,
    JobAnswer,
    JobKind,
    ProfileAnswer,
    WorkloadLine,
)
from toolkits.core.schema import (
    BenchmarkResult,
    CompileResult,
    Diagnostic,
    Interval,
    Measurement,
    ProfileReport,
    Solution,
    Stage,
    Status,
    Task,
)

MAX_DETAIL = 900
MAX_DIAGNOSTICS = 5
MAX_WORKLOADS = 16
MAX_HOT_LINES = 10


class AnyJobAnswer(JobAnswer):
    """The answer of a compile, a benchmark or a profile, as its `kind` says; their fields follow the common head."""

    model_config = ConfigDict(extra="allow")


ANSWERS: dict[JobKind, type[JobAnswer]] = {
    "compile": CompileAnswer,
    "benchmark": BenchmarkAnswer,
    "profile": ProfileAnswer,
}


A = TypeVar("A", bound=JobAnswer)


def of_job(row: JobRow) -> JobAnswer:
    """The answer that the job left, or its state and what to do next."""
    return of_kind(ANSWERS[row.kind], row)


def of_kind(model: type[A], row: JobRow) -> A:
    if row.answer is not None:
        return model.model_validate(row.answer)
    return model(job=row.id, kind=row.kind, state=row.state, error=row.error, summary=_unfinished(row))


def _unfinished(row: JobRow) -> str:
    if row.state == "failed":
        return f"{row.kind} job {row.id} failed: {row.error}"
    if row.state == "cancelled":
        return f"{row.kind} job {row.id} was cancelled; nothing was recorded."
    return f'{row.kind} job {row.id} is {row.state}: call get_result(id="{row.id}") to wait for it.'


def compiled(job: str, build: CompileResult, log_path: str) -> CompileAnswer:
    warnings = sum(d.severity == "warning" for d in build.diagnostics)
    if build.ok:
        how = "found built" if build.cached else f"built in {build.build_ms:.0f} ms"
        summary = f"OK: {how} with {build.toolchain or build.toolkit}; {warnings} warnings."
    else:
        summary = f"COMPILE_ERROR: {first_error(build.diagnostics) or clip(build.log, 300)}"
    return CompileAnswer(
        job=job,
        kind="compile",
        state="done",
        summary=summary,
        ok=build.ok,
        solution=build.solution,
        diagnostics=diagnostic_lines(build.diagnostics),
        log_path=log_path,
        cached=build.cached,
        build_ms=round(build.build_ms, 1),
    )


def not_compiled(task: Task, solution: Solution, build: CompileResult, mode: str, baseline: str) -> BenchmarkResult:
    """A candidate that does not build is judged too: its result is COMPILE_ERROR."""
    return BenchmarkResult.model_validate(
        {
            "task": task.name,
            "solution": solution.id,
            "mode": mode,
            "status": Status.COMPILE_ERROR,
            "stage": Stage.COMPILE,
            "baseline": baseline,
            "cause": "compile_error",
            "detail": first_error(build.diagnostics) or clip(build.log, MAX_DETAIL),
            "hint": "fix the first error; later ones often follow from it",
            "total": len(task.workloads) if mode == "full" else 0,
            "diagnostics": build.diagnostics,
        }
    )


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
        failed_workload=result.workload,
        verdict=result.verdict,
        speedup=rounded(result.speedup),
        worst=short(result.worst),
        worst_workload=result.worst_workload,
        below_one=result.below_one,
        passed=result.passed,
        total=result.total,
        aa_factor=short(max(noise, default=None)),
        baseline=result.baseline,
        workloads=[workload_line(m) for m in result.measurements[:MAX_WORKLOADS]],
        diagnostics=diagnostic_lines(result.diagnostics),
        log_path=result.log_path,
    )


def of_evaluation(row: EvaluationRow) -> BenchmarkAnswer:
    return judged(row.job, row.result, row.id)


def profiled(job: str, report: ProfileReport) -> ProfileAnswer:
    known = {name: value for name, value in report if name in ProfileAnswer.model_fields}
    known |= {"hot_lines": report.hot_lines[:MAX_HOT_LINES], "notes": [clip(note, 300) for note in report.notes[:5]]}
    return ProfileAnswer.model_validate(
        {"job": job, "kind": "profile", "state": "done", "summary": report.verdict or f"profiled with {report.tool}"}
        | known
    )


def headline(result: BenchmarkResult) -> str:
    """The result in one or two sentences."""
    if result.status is not Status.PASSED:
        where = f" on {result.workload}" if result.workload else ""
        cause = f" ({result.cause})" if result.cause else ""
        hint = f" Hint: {clip(result.hint, 200)}" if result.hint else ""
        return f"{result.status} at {result.stage}{where}{cause}: {clip(result.detail, 400)}{hint}"
    if result.speedup is None:
        return f"PASSED: correct in {result.rounds} rounds; mode {result.mode} does not time."
    return (
        f"PASSED, {result.verdict}: {ratio(result.speedup)} against {result.baseline.split(' ')[0]} "
        f"over {result.passed} of {result.total} workloads; worst {result.worst:.3g}x on {result.worst_workload}; "
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
    )


def diagnostic_lines(diagnostics: list[Diagnostic]) -> list[DiagnosticLine]:
    return [DiagnosticLine(where=where(d), message=clip(d.message, 300)) for d in diagnostics[:MAX_DIAGNOSTICS]]


def first_error(diagnostics: list[Diagnostic]) -> str:
    error = next((d for d in diagnostics if d.severity == "error"), None)
    return f"{where(error)} {clip(error.message, 300)}".strip() if error else ""


def where(diagnostic: Diagnostic) -> str:
    parts = [diagnostic.file, diagnostic.line, diagnostic.column]
    return ":".join(str(part) for part in parts if part is not None and part != "")


def ratio(interval: Interval) -> str:
    return f"{interval.value:.3g}x ({interval.low:.3g} to {interval.high:.3g})"


def short(number: float | None) -> float | None:
    """Four significant digits: more is noise, and is paid for in tokens."""
    return None if number is None else float(f"{number:.4g}")


def rounded(interval: Interval | None) -> Interval | None:
    if interval is None:
        return None
    return Interval(
        value=float(f"{interval.value:.4g}"), low=float(f"{interval.low:.4g}"), high=float(f"{interval.high:.4g}")
    )


def clip(text: str, limit: int) -> str:
    """Head and tail of a long text."""
    if len(text) <= limit:
        return text
    return f"{text[: limit * 2 // 3]} ... {text[-(limit // 3 - 5) :]}"
