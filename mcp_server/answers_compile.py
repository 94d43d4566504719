"""What a compiler made of a solution, as a caller is shown it: small, and every fact stands alone."""

import re
from collections.abc import Mapping, Sequence

from mcp_server.excerpts import clip, diagnostic_lines, first_error
from mcp_server.schema import BuiltKernel, CompileAnswer
from toolkits.core.profilers import gpu_verdict
from toolkits.core.schema import CompileResult, KernelReport

MAX_BUILT = 8
MAX_NOTES = 4
MAX_MIX = 8
_COUNT = re.compile(r"\d+ x |\d+ bytes|\d+ registers|\d+ back")
"""What differs between architectures in one and the same note."""


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
