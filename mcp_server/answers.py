"""From what the lab measured to what a caller is shown: small models in which every fact stands alone.

The whole record stays in the ledger and in the log file; nothing here may grow with the size of a kernel's output.
"""

import re
from collections.abc import Mapping, Sequence
from typing import TypeVar

from pydantic import ConfigDict

from mcp_server.excerpts import clip, first_error, of_exception, place
from mcp_server.ledger import EvaluationRow, JobRow
from mcp_server.schema import (
    BenchmarkAnswer,
    BuiltKernel,
    CompileAnswer,
    DiagnosticLine,
    JobAnswer,
    JobKind,
    KernelLine,
    LessonLine,
    ProfileAnswer,
    WorkloadLine,
)
from toolkits.core.causes import Cause, hint
from toolkits.core.errors import HarnessError
from toolkits.core.profilers import compare, gpu_verdict
from toolkits.core.schema import (
    BenchmarkResult,
    CompileResult,
    Diagnostic,
    Interval,
    Json,
    KernelProfile,
    KernelReport,
    Lesson,
    Measurement,
    Mode,
    ProfileReport,
    Solution,
    Stage,
    Status,
    Task,
)

MAX_DETAIL = 900
MAX_DIAGNOSTICS = 5
MAX_WORKLOADS = 16
MAX_ADVICE = 3
MAX_HOT_LINES = 10
MAX_KERNELS = 6
MAX_CHANGES = 20
MAX_BUILT = 8
MAX_NOTES = 4
MAX_MIX = 8
_COUNT = re.compile(r"\d+ x |\d+ bytes|\d+ registers|\d+ back")
"""What differs between architectures in one and the same note."""


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
    head: Json = {"job": row.id, "kind": row.kind, "state": row.state, "error": row.error, "summary": _unfinished(row)}
    if model is BenchmarkAnswer and row.state == "cancelled":
        head["status"] = Status.CANCELLED
    return model.model_validate(head)


def _unfinished(row: JobRow) -> str:
    if row.state == "failed":
        return f"{row.kind} job {row.id} failed: {row.error}"
    if row.state == "cancelled":
        return f"{row.kind} job {row.id} was cancelled; nothing was recorded."
    return f'{row.kind} job {row.id} is {row.state}: call get_result(id="{row.id}") to wait for it.'


def compiled(job: str, sources: Mapping[str, str], build: CompileResult, log_path: str) -> CompileAnswer:
    warnings = sum(d.severity == "warning" for d in build.diagnostics)
    if build.ok:
        how = "found built" if build.cached else f"built in {build.build_ms:.0f} ms"
        summary = f"OK: {how} with {build.toolchain or build.toolkit}; {warnings} warnings."
    else:
        summary = f"COMPILE_ERROR: {first_error(build.diagnostics, sources) or clip(build.log, 300)}"
    return CompileAnswer(
        job=job,
        kind="compile",
        state="done",
        summary=summary,
        ok=build.ok,
        solution=build.solution,
        kernels=_built_kernels(build.kernels),
        more_kernels=max(len(build.kernels) - MAX_BUILT, 0),
        not_timed=build.not_timed,
        diagnostics=diagnostic_lines(build.diagnostics),
        log_path=log_path,
        cached=build.cached,
        build_ms=round(build.build_ms, 1),
    )


def _built_kernels(reports: Sequence[KernelReport]) -> list[BuiltKernel]:
    """Each note once: what holds for one architecture mostly holds for the next."""
    told: set[str] = set()
    lines: list[BuiltKernel] = []
    for report in reports[:MAX_BUILT]:
        fresh = {_COUNT.sub("", note): note for note in report.notes}
        notes = [note for what, note in fresh.items() if what not in told][:MAX_NOTES]
        told.update(fresh)
        lines.append(_built_kernel(report, notes))
    return lines


def _built_kernel(report: KernelReport, notes: Sequence[str]) -> BuiltKernel:
    counted = list(report.instructions.items())
    known = {name: value for name, value in report if name in BuiltKernel.model_fields}
    known |= {
        "name": gpu_verdict.short(report.name, 60),
        "more_registers": _named_counts(a=report.accumulation_registers, s=report.scalar_registers),
        "spills": _spills(report),
        "shared_bytes": None
        if report.shared_bytes is None
        else report.shared_bytes + (report.dynamic_shared_bytes or 0),
        "instructions": " ".join(f"{kind}:{number}" for kind, number in counted[:MAX_MIX]),
        "peak": f"{report.peak_registers} at {report.peak_line}".removesuffix(" at ") if report.peak_registers else "",
        "notes": [clip(note, 300) for note in notes],
    }
    return BuiltKernel.model_validate(known)


def _named_counts(**counts: int | None) -> str:
    return " ".join(f"{number}{name}" for name, number in counts.items() if number is not None)


def _spills(report: KernelReport) -> str:
    if report.spill_stores_bytes or report.spill_loads_bytes:
        return f"{report.spill_stores_bytes}/{report.spill_loads_bytes} B"
    return f"{report.spilled_registers}" if report.spilled_registers else ""


def not_compiled(task: Task, solution: Solution, build: CompileResult, mode: Mode, baseline: str) -> BenchmarkResult:
    """A candidate that does not build is judged too: its result is COMPILE_ERROR."""
    return BenchmarkResult(
        task=task.name,
        solution=solution.id,
        mode=mode,
        status=Status.COMPILE_ERROR,
        stage=Stage.COMPILE,
        baseline=baseline,
        cause=Cause.COMPILE_ERROR,
        detail=first_error(build.diagnostics, solution.sources) or clip(build.log, MAX_DETAIL),
        hint=Cause.COMPILE_ERROR.hint,
        diagnostics=build.diagnostics,
    )


def not_run(task: Task, solution: Solution, build: CompileResult, mode: Mode, baseline: str) -> BenchmarkResult:
    """A candidate that builds, for a device that this machine has not: neither good nor bad."""
    return BenchmarkResult(
        task=task.name,
        solution=solution.id,
        mode=mode,
        status=Status.SKIPPED,
        stage=Stage.LOAD,
        baseline=baseline,
        detail=build.not_timed,
        not_timed=build.not_timed,
        diagnostics=build.diagnostics,
    )


def not_judged(task: Task, solution: Solution, mode: Mode, baseline: str, error: HarnessError) -> BenchmarkResult:
    """The lab failed, and not only once: the record of that, which blames nobody and says what to do."""
    return BenchmarkResult(
        task=task.name,
        solution=solution.id,
        mode=mode,
        status=Status.HARNESS_ERROR,
        stage=Stage.LOAD,
        baseline=baseline,
        cause=error.cause,
        detail=str(error),
        hint=hint(error.cause),
    )


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


def of_evaluation(row: EvaluationRow) -> BenchmarkAnswer:
    return judged(row.job, row.result, row.id)


def profiled(job: str, report: ProfileReport, lessons: Sequence[Lesson] = ()) -> ProfileAnswer:
    known = {name: value for name, value in report if name in ProfileAnswer.model_fields}
    known |= {"hot_lines": report.hot_lines[:MAX_HOT_LINES], "notes": [clip(note, 300) for note in report.notes[:5]]}
    known |= {
        "kernels": [_kernel_line(kernel) for kernel in report.kernels[:MAX_KERNELS]],
        "more_kernels": max(len(report.kernels) - MAX_KERNELS, 0),
        "changes": [compare.line(change) for change in report.changes[:MAX_CHANGES]],
        "advice": [clip(line, 300) for kernel in report.kernels[:1] for line in kernel.advice],
        "lessons": [LessonLine(slug=one.slug, title=one.title, symptom=one.symptom) for one in lessons],
    }
    return ProfileAnswer.model_validate(
        {"job": job, "kind": "profile", "state": "done", "summary": report.verdict or f"profiled with {report.tool}"}
        | known
    )


def _kernel_line(kernel: KernelProfile) -> KernelLine:
    figures = {name: value for name, value in kernel if name in KernelLine.model_fields}
    shape = [
        " x ".join(str(size) for size in sizes if size > 1) or "1" for sizes in (kernel.grid, kernel.block) if sizes
    ]
    top = kernel.stalls[0] if kernel.stalls else None
    figures |= {
        "name": gpu_verdict.short(kernel.name, 100),
        "launch": " blocks of ".join(shape) if len(shape) == 2 else "",
        "stall": f"{top.share:.0%} {top.reason}" if top else "",
        "verdict": clip(kernel.verdict, 300),
    }
    return KernelLine.model_validate({name: _rounded(value) for name, value in figures.items()})


def _rounded(value: object) -> object:
    return float(f"{value:.4g}") if isinstance(value, float) else value


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


def diagnostic_lines(diagnostics: list[Diagnostic]) -> list[DiagnosticLine]:
    return [DiagnosticLine(where=place(d), message=clip(d.message, 300)) for d in diagnostics[:MAX_DIAGNOSTICS]]


def _failed_on(result: BenchmarkResult) -> str:
    """Where it failed first: a round with its distribution and axes, or a workload with its axes."""
    named = result.workload.partition(",")[0]
    failed = next((m for m in result.measurements if m.workload == named), None)
    axes = " ".join(f"{name}={size}" for name, size in failed.axes.items()) if failed else ""
    return f"{result.workload} ({axes})" if axes else result.workload


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
