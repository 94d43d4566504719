"""The same facts as the structured answers, as compact text for clients that show only text."""

import json
import re

from mcp_server.answers import ratio
from mcp_server.schema import (
    BenchmarkAnswer,
    BuiltKernel,
    CompileAnswer,
    DevicesAnswer,
    DiagnosticLine,
    HistoryAnswer,
    HistoryLine,
    JobAnswer,
    KernelLine,
    LessonAdded,
    LessonsAnswer,
    ProfileAnswer,
    RoleAnswer,
    RunAnswer,
    SolutionLine,
    TaskDescription,
    TaskLine,
    TaskList,
    WorkloadLine,
)
from mcp_server.wire import visible
from toolkits.core.schema import Record, SanitizerFinding, Speeds

_LIKE_OURS = re.compile(r"\n(?=(?:\w+|raw report)[:,])")
MAX_TEXT = 9_500
"""Clients cut a text at about 10 000 characters, in its middle."""


def text_of(answer: Record) -> str:
    """The answer's facts in lines of text."""
    text = visible("\n".join(line for line in _lines(answer) if line))
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}\n... {len(text) - MAX_TEXT} characters left out"


def _lines(answer: Record) -> list[str]:
    match answer:
        case BenchmarkAnswer():
            return _benchmark(answer)
        case CompileAnswer():
            return _compiled(answer)
        case ProfileAnswer():
            return _profile(answer)
        case JobAnswer():
            return [answer.summary]
        case TaskList():
            return [_task(line) for line in answer.tasks] or ["no tasks"]
        case TaskDescription():
            return _description(answer)
        case LessonsAnswer():
            return [*(f"{line.slug}: {line.title} {line.symptom}" for line in answer.lessons), "", answer.text]
        case LessonAdded():
            return [f"added {answer.lesson.slug} at {answer.path}"]
        case HistoryAnswer():
            more = f"more: read_history(after={answer.next_after})" if answer.more else ""
            return [*map(_event, answer.events), more] if answer.events else ["nothing has happened yet"]
        case HistoryLine():
            return [_event(answer)]
        case RunAnswer():
            return _run(answer)
        case RoleAnswer():
            return _role(answer)
        case DevicesAnswer():
            return _devices(answer)
        case _:
            return [answer.model_dump_json()]


def _benchmark(answer: BenchmarkAnswer) -> list[str]:
    noise = f"noise: A/A factor up to {answer.aa_factor:g}" if answer.aa_factor else ""
    return [
        _told(answer.summary),
        # The summary has the beginning and the end of what is long.
        "" if answer.detail in answer.summary else _told(answer.detail),
        "" if answer.hint in answer.summary else _named("hint", answer.hint),
        *map(_workload, answer.workloads),
        f"  and {answer.more_workloads} more workloads in the log" if answer.more_workloads else "",
        noise,
        *(f"warning: {warning}" for warning in answer.warnings),
        *(f"advice: {line}" for line in answer.advice),
        *map(_diagnostic, answer.diagnostics),
        *map(_finding, answer.findings),
        *_about(answer),
        _named("baseline", answer.baseline),
        _named("evaluation", answer.evaluation),
        _named("log", answer.log_path),
    ]


def _finding(one: SanitizerFinding) -> str:
    where = f"{one.file}:{one.line}" if one.line else one.file or "an unknown place"
    access = f" {one.access} of {one.bytes} bytes at {one.address}" if one.bytes and one.access else ""
    return f"  {where} {one.kind} in {one.function} ({one.tool}){access}: {one.detail}"


def _compiled(answer: CompileAnswer) -> list[str]:
    return [
        _told(answer.summary),
        *map(_diagnostic, answer.diagnostics),
        *(line for kernel in answer.kernels for line in _built_kernel(kernel)),
        f"  and {answer.more_kernels} more kernels in the log" if answer.more_kernels else "",
        _named("not timed", answer.not_timed),
        *_about(answer),
        _named("log", answer.log_path),
    ]


def _built_kernel(kernel: BuiltKernel) -> list[str]:
    facts = [
        f"{kernel.registers} registers" if kernel.registers is not None else "",
        kernel.more_registers,
        f"spills {kernel.spills}" if kernel.spills else "",
        f"stack {kernel.stack_bytes} B" if kernel.stack_bytes else "",
        f"shared {kernel.shared_bytes} B" if kernel.shared_bytes else "",
        occupancy_of(kernel),
        kernel.instructions,
        f"peak {kernel.peak}" if kernel.peak else "",
    ]
    head = f"  {kernel.name} {kernel.target}: {', '.join(filter(None, facts))}"
    return [head, *(f"    {note}" for note in kernel.notes)]


def occupancy_of(kernel: BuiltKernel) -> str:
    """Such as `occupancy 50% at 256 threads (registers)`."""
    if kernel.occupancy is None:
        return ""
    at = f" at {kernel.threads} threads" if kernel.threads else ""
    return f"occupancy {kernel.occupancy:.0%}{at}{f' ({kernel.occupancy_limit})' if kernel.occupancy_limit else ''}"


def _told(text: str) -> str:
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


def _profile(answer: ProfileAnswer) -> list[str]:
    counters = [
        f"{name}={value:g}"
        for name in ("instructions", "cycles", "duration_us", "l1_misses", "ll_misses", "branch_misses")
        if (value := answer.model_dump()[name]) is not None
    ]
    return [
        _told(answer.summary),
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
        _named("raw report", answer.raw_report),
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
    times = (
        f"{line.launches} x {line.duration_us:g} us" if line.duration_us is not None else f"{line.launches} launches"
    )
    rest = [f"{line.registers} registers" if line.registers is not None else "", line.launch, line.stall]
    return f"  {line.name}: {', '.join([times, *shares, *filter(None, rest)])}\n    {line.verdict}"


def _task(line: TaskLine) -> str:
    variants = f"; variants {', '.join(line.variants)}" if line.variants else ""
    baselines = ", ".join(line.baselines)
    return (
        f"{line.name}: {line.title} ({line.op_type}; {line.workloads} workloads; baselines {baselines}; "
        f"start {line.start}{variants})"
    )


def _description(task: TaskDescription) -> list[str]:
    return [
        f"{task.name}: {task.title}",
        task.description.strip(),
        "",
        f"C++: {task.c_signature}",
        f"CUDA (HIP: hipStream_t): {task.cuda_signature}",
        f"OpenCL: {task.opencl_signature}",
        f"Python: {task.python_signature}",
        _named("plan step", task.plan),
        *(f"C++ with a plan: {signature}" for signature in task.c_plan_signatures),
        *(f"Python with a plan: {signature}" for signature in task.python_plan_signatures),
        *_list("inputs", task.inputs),
        *_list("outputs", task.outputs),
        *_list("checks", task.checks),
        _named("least work of a call", task.least_work),
        *_list("distributions", task.distributions),
        *_list("workloads", task.workloads),
        *_list("solutions", [_solution(line) for line in task.solutions]),
        _named("lessons worth reading first", ", ".join(task.lessons)),
    ]


def _solution(line: SolutionLine) -> str:
    tunables = [
        f"\n    {name} in {t.values} (default {t.default}) {t.description}".rstrip()
        for name, t in line.tunables.items()
    ]
    return f"{line.name} ({line.toolkit}) at {line.path}: {line.description}{''.join(tunables)}"


def _list(title: str, lines: list[str]) -> list[str]:
    return [f"{title}:", *(f"  {line}" for line in lines)]


def _event(line: HistoryLine) -> str:
    return f"{line.seq} {line.at} {line.role or '-'} {line.kind} {line.model_dump_json(include={'body'})[8:-1]}"


def _run(answer: RunAnswer) -> list[str]:
    how = "created" if answer.created else "resumed"
    state = "finished" if answer.finished else "open"
    return [
        f"run {answer.run} on {answer.task}: {how}, {state}; {answer.evaluations} evaluations, "
        f"USD {answer.spent_usd:.2f}, {answer.spent_tokens} tokens; folder {answer.folder}",
        f"config: {json.dumps(answer.config)}",
    ]


def _role(answer: RoleAnswer) -> list[str]:
    best = f"; best {ratio(answer.best)} in {answer.best_evaluation}" if answer.best else ""
    return [
        f"role {answer.role} ({answer.name}, {answer.agent}) is {answer.state}: "
        f"{answer.evaluations} evaluations{best}; USD {answer.usd:.2f}, {answer.tokens} tokens, {answer.seconds:.0f} s",
        answer.note,
        _named("folder", answer.folder),
    ]


def _devices(answer: DevicesAnswer) -> list[str]:
    devices = [
        f"{d.name} ({d.kind}): {d.description}, {d.cores} cores, {d.memory_gb} GB, {' '.join(d.features)}"
        f"{', busy' if d.busy else ''}"
        for d in answer.devices
    ]
    devices += [_speeds(d.speeds) for d in answer.devices if d.speeds]
    toolkits = [f"toolkit {name}: {missing or 'usable'}" for name, missing in answer.toolkits.items()]
    return [*devices, *toolkits, *(f"profiler {name}: {m or 'usable'}" for name, m in answer.profilers.items())]


def _speeds(speeds: Speeds) -> str:
    levels = ", ".join(f"{level.name} {level.gb_s:g} GB/s" for level in speeds.levels)
    return (
        f"  one core of {speeds.machine}, at most: {levels}; {speeds.gflops:g} GFLOP/s in float32, "
        f"{speeds.fastest_gflops:g} in its fastest format"
    )


def _named(name: str, value: str) -> str:
    return f"{name}: {value}" if value else ""
