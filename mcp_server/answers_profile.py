"""What a profiler saw, as a caller is shown it: small, and every fact stands alone."""

from collections.abc import Sequence

from mcp_server.excerpts import clip
from mcp_server.schema import KernelLine, LessonLine, ProfileAnswer
from toolkits.core.profilers import compare, gpu_verdict
from toolkits.core.schema import KernelProfile, Lesson, ProfileReport

MAX_HOT_LINES = 10
MAX_KERNELS = 6
MAX_CHANGES = 20


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
