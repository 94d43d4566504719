"""The same facts as the structured answers, as compact text for clients that show only text."""

import json

from mcp_server.figures import ratio
from mcp_server.schema import (
    BenchmarkAnswer,
    CompileAnswer,
    DevicesAnswer,
    HistoryAnswer,
    HistoryLine,
    JobAnswer,
    LessonAdded,
    LessonsAnswer,
    ProfileAnswer,
    RoleAnswer,
    RunAnswer,
    SolutionLine,
    TaskDescription,
    TaskLine,
    TaskList,
)
from mcp_server.texts_devices import device_lines
from mcp_server.texts_jobs import benchmark_lines, compile_lines, named
from mcp_server.texts_profile import profile_lines
from mcp_server.wire import visible
from toolkits.core.schema import Record

MAX_TEXT = 9_500
"""Clients cut a text at about 10 000 characters, in its middle."""


def text_of(answer: Record) -> str:
    """The answer's facts in lines of text."""
    text = visible("\n".join(line for line in _lines(answer) if line))
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}\n... {len(text) - MAX_TEXT} characters left out"


def _lines(answer: Record) -> list[str]:
    match answer:
        case BenchmarkAnswer():
            return benchmark_lines(answer)
        case CompileAnswer():
            return compile_lines(answer)
        case ProfileAnswer():
            return profile_lines(answer)
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
            return device_lines(answer)
        case _:
            return [answer.model_dump_json()]


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
        f"C++, CUDA with `binding: torch` or `binding: tvm-ffi`: {task.tensor_signature}",
        f"OpenCL: {task.opencl_signature}",
        f"Python: {task.python_signature}",
        named("plan step", task.plan),
        *(f"C++ with a plan: {signature}" for signature in task.c_plan_signatures),
        *(f"Python with a plan: {signature}" for signature in task.python_plan_signatures),
        *_list("inputs", task.inputs),
        *_list("outputs", task.outputs),
        *_list("checks", task.checks),
        named("least work of a call", task.least_work),
        *_list("distributions", task.distributions),
        *_list("workloads", task.workloads),
        *_list("solutions", [_solution(line) for line in task.solutions]),
        named("lessons worth reading first", ", ".join(task.lessons)),
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
        named("folder", answer.folder),
    ]
