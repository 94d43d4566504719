"""How the CLI shows answers and progress: tables at 100 columns on stdout, what goes on now on stderr."""

import json
import textwrap
from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mcp_server.jobs import Report
from mcp_server.schema import (
    BenchmarkAnswer,
    CompileAnswer,
    DevicesAnswer,
    HistoryAnswer,
    LessonsAnswer,
    TaskList,
    WorkloadLine,
)
from mcp_server.texts import text_of
from mcp_server.texts_jobs import share_of_device
from mcp_server.wire import slim, visible
from toolkits.core.schema import Record

WIDTH = 100
PROSE = ("title", "variants", "what", "title and symptom", "kernel", "instructions")
"""Columns that may break lines; names, ids and figures are copied by hand and stay whole."""
BODY_KEYS = ("status", "verdict", "speedup", "cause", "variant", "parameters", "outcome", "diagnosis", "note", "title")
"""What a line of history shows of an event; --json shows all."""


def json_text(answer: Record) -> str:
    return visible(json.dumps(slim(answer), indent=2, ensure_ascii=False))


def show(answer: Record) -> None:
    """A table where there are rows, else the text that MCP clients get."""
    console = Console(width=WIDTH, highlight=False)
    match answer:
        case TaskList():
            console.print(_tasks(answer))
        case BenchmarkAnswer(workloads=[_, *_]):
            _benchmark(console, answer)
        case CompileAnswer(kernels=[_, *_]):
            _built(console, answer)
        case HistoryAnswer(events=[_, *_]):
            console.print(_history(answer))
        case LessonsAnswer(lessons=[_, _, *_]):
            console.print(_lessons(answer))
        case DevicesAnswer():
            console.print(Text("\n".join(part for line in text_of(answer).splitlines() for part in _wrapped(line))))
        case _:
            console.print(Text(text_of(answer)), soft_wrap=True)


@contextmanager
def progress() -> Generator[Report]:
    """A status line on a terminal, a line a stage elsewhere."""
    console = Console(stderr=True, width=WIDTH, highlight=False)
    with console.status("") as status:
        shown = ""

        async def report(seconds: float, doing: str) -> None:
            nonlocal shown
            if console.is_terminal:
                status.update(f"{doing}, {seconds:.0f} s")
            elif (stage := doing.split(" ")[0]) != shown:
                shown = stage
                console.print(Text(doing))

        yield report


def _wrapped(line: str) -> list[str]:
    """A line of prose that nobody copies, under its own beginning."""
    lead = " " * (len(line) - len(line.lstrip()))
    return textwrap.wrap(line, WIDTH, subsequent_indent=f"{lead}    ", break_on_hyphens=False)


def _table(*columns: str) -> Table:
    table = Table(width=WIDTH, box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, no_wrap=column not in PROSE, overflow="fold")
    return table


def _tasks(answer: TaskList) -> Table:
    table = _table("task", "title", "workloads", "start", "variants")
    for line in answer.tasks:
        table.add_row(line.name, line.title, str(line.workloads), line.start, ", ".join(line.variants))
    return table


def _benchmark(console: Console, answer: BenchmarkAnswer) -> None:
    planned = any(w.run_only for w in answer.workloads)
    own = ["plan us", "run only"] if planned else ["of device"]  # --json has all
    table = _table("workload", "latency us", "baseline us", "speedup", "99 % interval", *own, "verdict")
    for w in answer.workloads:
        interval = f"{w.low:g} to {w.high:g}" if w.low is not None and w.high is not None else ""
        table.add_row(
            w.workload,
            _number(w.latency_us),
            _number(w.baseline_us),
            _number(w.speedup),
            interval,
            *(_plan_cells(w) if planned else [_of_device(w)]),
            w.verdict or w.status,
        )
    console.print(table)
    console.print(Text(text_of(answer.model_copy(update={"workloads": []}))), soft_wrap=True)


def _built(console: Console, answer: CompileAnswer) -> None:
    table = _table("kernel", "target", "regs", "spills", "stack B", "shared B", "occupancy", "limit", "instructions")
    for k in answer.kernels:
        at = f" @{k.threads}" if k.threads else ""
        table.add_row(
            Text(visible(k.name)),
            k.target,
            " ".join(filter(None, (f"{_number(k.registers)}{'v' if k.more_registers else ''}", k.more_registers))),
            k.spills,
            _number(k.stack_bytes),
            _number(k.shared_bytes),
            "" if k.occupancy is None else f"{k.occupancy:.0%}{at}",
            k.occupancy_limit,
            Text(k.instructions),
        )
    console.print(table)
    for k in answer.kernels:
        notes = [*([f"most registers alive: {k.peak}"] if k.peak else []), *k.notes]
        for note in notes:
            console.print(Text(visible(f"{k.name} {k.target}: {note}")), soft_wrap=True)
    console.print(Text(text_of(answer.model_copy(update={"kernels": []}))), soft_wrap=True)


def _plan_cells(w: WorkloadLine) -> list[str]:
    return [_number(w.plan_us), f"{w.run_only.value:.3g}x" if w.run_only else ""]


def _of_device(w: WorkloadLine) -> str:
    return "" if w.floor_share is None else share_of_device(w.floor_share)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}"


def _history(answer: HistoryAnswer) -> Table:
    table = _table("seq", "at", "role", "kind", "what")
    for line in answer.events:
        what = ", ".join(f"{key} {_brief(line.body[key])}" for key in BODY_KEYS if line.body.get(key))
        table.add_row(str(line.seq), line.at[:19], line.role, line.kind, Text(what))
    return table


def _brief(value: object) -> str:
    match value:
        case {"value": float(ratio)}:
            return f"{ratio:.3g}x"
        case dict() | list():
            return json.dumps(value)
        case _:
            return str(value)


def _lessons(answer: LessonsAnswer) -> Table:
    table = _table("lesson", "title and symptom")
    for line in answer.lessons:
        table.add_row(line.slug, Text(f"{line.title}. {line.symptom}"))
    return table
