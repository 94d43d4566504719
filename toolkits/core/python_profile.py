"""Profiles a Python solution in a box: lines by sampled time, torch operators by their own time."""

from pathlib import Path
from shutil import rmtree

from pydantic import ValidationError

from toolkits.core import process
from toolkits.core.profile_box import Room, room
from toolkits.core.profile_child import SampleRequest, Samples, dump_arguments, last_words, run_child
from toolkits.core.profilers.verdict import Bottleneck
from toolkits.core.schema import HotLine, ProfileReport, Solution, Task, Workload

ANSWER = "samples.json"
HOT_LINES = 12
DISPATCH_US = 4.0
"""An operator that takes less than this on average is mostly the cost of calling it."""


async def profile(
    task: Task, solution: Solution, workload: Workload, artifact: Path, folder: Path, limit_s: float
) -> ProfileReport:
    """Where the time of a call goes; instructions are not counted."""
    arguments = await dump_arguments(task, workload, folder)
    try:
        with room(folder, [artifact, arguments]) as own:
            request = SampleRequest(
                task=task,
                workload=workload,
                solution=solution,
                artifact=artifact,
                arguments=arguments,
                answer=own.inside / ANSWER,
            )
            done = await run_child("toolkits.core.profilers.sampling", request, folder, limit_s, own)
            return _report(done, own, solution, folder.resolve())
    finally:
        rmtree(arguments)


def _report(done: process.Completed, own: Room, solution: Solution, folder: Path) -> ProfileReport:
    log = folder / "sampling.log"
    log.write_text(done.output, encoding="utf-8")
    ended, samples = last_words(done), None
    if done.returncode == 0:
        # Written where the solution may write too: what does not read as an answer is none.
        try:
            samples = [(Samples.model_validate_json(path.read_bytes()), path) for path in own.collect(folder, ANSWER)]
        except ValidationError:
            ended += ", and left no answer that can be read"
    if not samples:
        verdict = f"nothing was measured: it {ended}"
        return ProfileReport(
            tool="sampling", target=solution.id, verdict=verdict, notes=own.notes(), raw_report=str(log)
        )
    report = report_of(samples[0][0], solution, str(samples[0][1]))
    return report.model_copy(update={"notes": [*report.notes, *own.notes()]})


def report_of(samples: Samples, solution: Solution, raw_report: str) -> ProfileReport:
    """The samples as a report."""
    lines = hot_lines(samples, solution)
    bottleneck, line = verdict(samples)
    hottest = [f"{lines[0].share:.0%} of the time at {lines[0].file}:{lines[0].line}"] if lines else []
    return ProfileReport(
        tool="sampling",
        target=solution.id,
        duration_us=samples.call_us,
        hot_lines=lines,
        bottleneck=bottleneck,
        verdict="; ".join([line, *hottest]),
        notes=[
            f"mean of {samples.calls} calls on one thread; shares are of wall time, sampled every millisecond",
            "operators by own time in one call: "
            + ", ".join(f"{op.name} {op.self_us:.0f} us in {op.calls}" for op in samples.operators),
        ],
        raw_report=raw_report,
    )


def hot_lines(samples: Samples, solution: Solution) -> list[HotLine]:
    """The lines that ran most often when the sampler looked."""
    everything = sum(samples.lines.values()) or 1
    ranked = sorted(((count, where) for where, count in samples.lines.items() if where), reverse=True)
    return [_hot_line(where, count / everything, solution) for count, where in ranked[:HOT_LINES]]


def _hot_line(where: str, share: float, solution: Solution) -> HotLine:
    file, _, text = where.rpartition(":")
    number = int(text) if text.isdecimal() and len(text) < 10 else 0
    lines = solution.sources.get(file, "").splitlines()
    source = lines[number - 1].strip() if 0 < number <= len(lines) else ""
    return HotLine(file=file, line=number, share=share, instructions=None, source=source)


def verdict(samples: Samples) -> tuple[Bottleneck, str]:
    """Many tiny operators are latency; what else limits torch's own kernels cannot be seen from here."""
    calls, self_us = sum(op.calls for op in samples.operators), sum(op.self_us for op in samples.operators)
    if not calls:
        return "latency", f"latency: no torch operator ran in {samples.call_us:.0f} us; the interpreter does the work"
    if self_us / calls < DISPATCH_US:
        return "latency", (
            f"latency: {calls} operator calls of {self_us / calls:.1f} us each, mostly the cost of calling them;"
            " fuse them or write the loop in C++"
        )
    top = max(samples.operators, key=lambda op: op.self_us)
    return "unknown", (
        f"{top.name} takes {top.self_us / self_us:.0%} of the operators' time; whether memory or arithmetic limits it"
        " is not visible from Python"
    )
