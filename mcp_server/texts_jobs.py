"""What became of a solution, as lines of text: benchmarks and compilations."""

import re

from mcp_server.figures import ratio
from mcp_server.schema import BenchmarkAnswer, BuiltKernel, CompileAnswer, DiagnosticLine, WorkloadLine
from toolkits.core.schema import SanitizerFinding

_LIKE_OURS = re.compile(r"\n(?=(?:\w+|raw report)[:,])")


def benchmark_lines(answer: BenchmarkAnswer) -> list[str]:
    """Verdict, times, what was found on the way, and the ids."""
    noise = f"noise: A/A factor up to {answer.aa_factor:g}" if answer.aa_factor else ""
    return [
        told(answer.summary),
        # The summary has the beginning and the end of what is long.
        "" if answer.detail in answer.summary else told(answer.detail),
        "" if answer.hint in answer.summary else named("hint", answer.hint),
        *map(_workload, answer.workloads),
        f"  and {answer.more_workloads} more workloads in the log" if answer.more_workloads else "",
        noise,
        *(f"warning: {warning}" for warning in answer.warnings),
        *(f"advice: {line}" for line in answer.advice),
        *map(_diagnostic, answer.diagnostics),
        *map(_finding, answer.findings),
        *_about(answer),
        named("baseline", answer.baseline),
        named("evaluation", answer.evaluation),
        named("log", answer.log_path),
    ]


def _finding(one: SanitizerFinding) -> str:
    where = f"{one.file}:{one.line}" if one.line else one.file or "an unknown place"
    access = f" {one.access} of {one.bytes} bytes at {one.address}" if one.bytes and one.access else ""
    return f"  {where} {one.kind} in {one.function} ({one.tool}){access}: {one.detail}"


def compile_lines(answer: CompileAnswer) -> list[str]:
    """What the compiler said and made."""
    return [
        told(answer.summary),
        *map(_diagnostic, answer.diagnostics),
        *(line for kernel in answer.kernels for line in _built_kernel(kernel)),
        f"  and {answer.more_kernels} more kernels in the log" if answer.more_kernels else "",
        named("not timed", answer.not_timed),
        *_about(answer),
        named("log", answer.log_path),
    ]


def _built_kernel(kernel: BuiltKernel) -> list[str]:
    facts = [
        f"{kernel.registers} registers" if kernel.registers is not None else "",
        kernel.more_registers,
        f"spills {kernel.spills}" if kernel.spills else "",
        f"stack {kernel.stack_bytes} B" if kernel.stack_bytes else "",
        f"shared {kernel.shared_bytes} B" if kernel.shared_bytes else "",
        _occupancy(kernel),
        kernel.instructions,
        f"peak {kernel.peak}" if kernel.peak else "",
    ]
    head = f"  {kernel.name} {kernel.target}: {', '.join(filter(None, facts))}"
    return [head, *(f"    {note}" for note in kernel.notes)]


def _occupancy(kernel: BuiltKernel) -> str:
    """Such as `occupancy 50% at 256 threads (registers)`."""
    if kernel.occupancy is None:
        return ""
    at = f" at {kernel.threads} threads" if kernel.threads else ""
    return f"occupancy {kernel.occupancy:.0%}{at}{f' ({kernel.occupancy_limit})' if kernel.occupancy_limit else ''}"


def told(text: str) -> str:
    """What a candidate may have worded starts no line of the answer's own."""
    return _LIKE_OURS.sub("\n    ", text)


def _about(answer: BenchmarkAnswer | CompileAnswer) -> list[str]:
    """The ids, once there is a solution to speak of."""
    return [f"solution: {answer.solution} (job {answer.job})"] if answer.solution else []


def _workload(line: WorkloadLine) -> str:
    if line.speedup is None:
        return f"  {line.workload}: {line.status}"
    times = f"{line.latency_us:g} us, baseline {line.baseline_us:g} us" if line.latency_us and line.baseline_us else ""
    share = f"; {share_of_device(line.floor_share)} of what the device could do" if line.floor_share is not None else ""
    speed = f"{line.speedup:g}x ({line.low:g} to {line.high:g}) {line.verdict}"
    return f"  {line.workload}: {speed}; {times}{_plans(line)}{share}"


def _plans(line: WorkloadLine) -> str:
    """What of the times is the plan's, and the speed of the run alone."""
    if line.run_only is None:
        return ""
    return (
        f"; of it plan {line.plan_us or 0:g} us, baseline {line.baseline_plan_us or 0:g} us; "
        f"run only {ratio(line.run_only)}"
    )


def share_of_device(share: float) -> str:
    """Two digits are enough to know how much is left."""
    return f"{share:.0%}" if share >= 0.1 else f"{share:.1%}"


def _diagnostic(line: DiagnosticLine) -> str:
    return f"  {line.where} {line.message}"


def named(name: str, value: str) -> str:
    """A line of its own; nothing where there is nothing."""
    return f"{name}: {value}" if value else ""
