"""What a profiler saw, as lines of text. What was not measured is left out."""

from mcp_server.schema import KernelLine, ProfileAnswer
from mcp_server.texts_jobs import named, told


def profile_lines(answer: ProfileAnswer) -> list[str]:
    """The verdict, its evidence, and what to read next."""
    counters = [
        f"{name}={value:g}"
        for name in ("instructions", "cycles", "duration_us", "l1_misses", "ll_misses", "branch_misses")
        if (value := answer.model_dump()[name]) is not None
    ]
    return [
        told(answer.summary),
        f"bottleneck: {answer.bottleneck}" if answer.bottleneck else "",
        " ".join(counters),
        _on_device(answer),
        *map(_kernel, answer.kernels),
        f"  and {answer.more_kernels} more kernels" if answer.more_kernels else "",
        *(f"  {change}" for change in answer.changes),
        *(f"  {h.share:.0%} {h.file}:{h.line} {h.source.strip()}" for h in answer.hot_lines),
        *(f"advice: {line}" for line in answer.advice),
        *(f"lesson {line.slug}: {line.title}. {line.symptom}" for line in answer.lessons),
        *answer.notes,
        f"profiled {answer.target} with {answer.tool} (job {answer.job})" if answer.tool else "",
        named("raw report", answer.raw_report),
    ]


def _on_device(answer: ProfileAnswer) -> str:
    if answer.launches is None:
        return ""
    busy = f", busy {answer.busy_share:.0%} of the time between them" if answer.busy_share is not None else ""
    where = " ".join(part for part in (answer.device, answer.architecture) if part)
    return f"{answer.launches} launches{' on ' if where else ''}{where}{busy}"


def _kernel(line: KernelLine) -> str:
    """What was not measured is left out."""
    shares = [
        f"{name} {value:.0%}"
        for name, value in (
            ("of the kernel time", line.share),
            ("memory", line.memory_share),
            ("compute", line.compute_share),
            ("tensor", line.tensor_share),
            ("occupancy", line.occupancy),
            ("possible", line.occupancy_possible),
        )
        if value is not None
    ]
    times = f"{line.launches} launches" if line.launches else ""
    if line.duration_us is not None:
        times = f"{line.launches} x {line.duration_us:g} us"
    rest = [f"{line.registers} registers" if line.registers is not None else "", line.launch, line.stall]
    facts = ", ".join(filter(None, [times, *shares, *rest]))
    return f"  {line.name}{': ' if facts else ''}{facts}\n    {line.verdict}"
