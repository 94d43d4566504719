"""The verbs that read and write what is known: tasks, devices, lessons, history."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from mcp_server import integrity, plots
from mcp_server.cli_verbs import AsJson, Task, done, settings_of, show
from mcp_server.serving import open_lab
from toolkits.core.schema import Lesson


def list_tasks(context: typer.Context, json: AsJson = False) -> None:
    """The kernels to be written here."""
    show(done(context, lambda lab, _caller, _report: lab.list_tasks()), json)


def describe_task(context: typer.Context, task: Task, json: AsJson = False) -> None:
    """All that a kernel's author must know."""
    show(done(context, lambda lab, caller, _report: lab.describe_task(caller, task)), json)


def devices(context: typer.Context, json: AsJson = False) -> None:
    """Devices, toolkits and profilers of this machine."""
    show(done(context, lambda lab, _caller, _report: lab.devices()), json)


def read_lessons(
    context: typer.Context,
    query: Annotated[list[str] | None, typer.Argument(help="Words; none: all lessons.")] = None,
    slug: Annotated[str, typer.Option(help="One lesson, `topic/name`, in full.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=50)] = 5,
    json: AsJson = False,
) -> None:
    """Find lessons by words, or read one."""
    words = " ".join(query or ())
    show(done(context, lambda lab, caller, _report: lab.read_lessons(caller, words, slug, limit)), json)


def add_lesson(
    context: typer.Context,
    slug: Annotated[str, typer.Argument(help="`topic/name`.", show_default=False)],
    title: Annotated[str, typer.Option(help="One line.")],
    symptom: Annotated[str, typer.Option(help="What one sees.")],
    cause: Annotated[str, typer.Option(help="Why it is so.")],
    remedy: Annotated[str, typer.Option(help="What to do.")],
    evidence: Annotated[
        list[str] | None, typer.Option(help="Evaluation id, or how it was verified; repeatable.")
    ] = None,
    language: Annotated[list[str] | None, typer.Option(help="Toolkit that it applies to; repeatable.")] = None,
    op: Annotated[list[str] | None, typer.Option(help="Kind of kernel that it applies to; repeatable.")] = None,
    json: AsJson = False,
) -> None:
    """Keep something learned that holds beyond one task."""
    applies = {name: values for name, values in (("language", language), ("op", op)) if values}
    lesson = Lesson(
        slug=slug, title=title, applies_to=applies, symptom=symptom, cause=cause, remedy=remedy, evidence=evidence or []
    )
    show(done(context, lambda lab, caller, _report: lab.add_lesson(caller, lesson)), json)


def read_history(
    context: typer.Context,
    run: Annotated[str, typer.Argument(help="Name of a run; none: what happened outside any.")] = "",
    after: Annotated[int, typer.Option(min=0, help="Only events with a higher number.")] = 0,
    limit: Annotated[int, typer.Option(min=1, max=200)] = 50,
    kind: Annotated[list[str] | None, typer.Option(help="Only this kind; repeatable.")] = None,
    json: AsJson = False,
) -> None:
    """What happened in a run, in order."""
    show(done(context, lambda lab, caller, _report: lab.read_history(caller, run, after, limit, kind or ())), json)


def plot(
    context: typer.Context,
    of: Annotated[str, typer.Argument(help="Id of an evaluation, or name of a run; none: what no run measured.")] = "",
    out: Annotated[Path, typer.Option(help="Where the PNG goes.")] = Path("plot.png"),
) -> None:
    """Draw a run's progress, or an evaluation by workload."""
    lab = open_lab(settings_of(context).root)
    out.write_bytes(asyncio.run(plots.plot(lab, lab.callers.local(), of)))
    typer.echo(out)


def verify(
    context: typer.Context, run: Annotated[str, typer.Argument(help="Name of a run.", show_default=False)]
) -> None:
    """Check a run's history chain, its records, and the sources of every evaluation."""
    lab = open_lab(settings_of(context).root)
    problems = integrity.problems(lab.workspace, lab.ledger, run)
    for problem in problems:
        typer.echo(problem, err=True)
    if problems:
        raise typer.Exit(1)
    typer.echo(f"run {run}: history, records and sources are as they were written")
