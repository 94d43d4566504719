"""The verbs of `kernel-lab`: the same functions as the MCP tools, for a person at a terminal.

Exit status: 0 done, 1 the candidate or the check failed, 2 the call itself was wrong, 130 interrupted.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, TypeVar, cast

import typer
from rich.console import Console
from rich.text import Text

from mcp_server import cli_text, integrity
from mcp_server.callers import Caller
from mcp_server.cli_serve import root_of
from mcp_server.jobs import ENDED, Report
from mcp_server.lab import Lab, Mode
from mcp_server.schema import BenchmarkAnswer, CompileAnswer, JobAnswer, RoleAnswer
from mcp_server.serving import open_lab
from toolkits.core.errors import LabError
from toolkits.core.schema import Lesson, Record, Status

R = TypeVar("R", bound=Record)
Verb = Callable[[Lab, Caller, Report], Awaitable[R]]

Task = Annotated[str, typer.Argument(help="Name of a task.", show_default=False)]
Folder = Annotated[str, typer.Argument(help="Folder of a solution, or its name in the task.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print exactly the structured result.")]


@dataclass(frozen=True)
class Settings:
    root: Path
    dashes: bool
    """The command line has a `--`: what follows it is a command of the user's."""


app = typer.Typer(
    name="kernel-lab",
    help="A laboratory for kernels: compile, check, time, profile, and keep what was learned.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def run(words: Sequence[str]) -> None:
    """Run one verb and end the process with its status."""
    try:
        app(args=list(words), prog_name="kernel-lab", obj="--" in words)
    except LabError as error:
        Console(stderr=True, soft_wrap=True).print(Text(f"kernel-lab: {error}", style="red"))
        sys.exit(2)


@app.callback(invoke_without_command=True)
def settings(
    context: typer.Context,
    root: Annotated[
        str, typer.Option(help="Workspace root; else KERNEL_LAB_ROOT, else .kernel-lab in the working directory.")
    ] = "",
    show_version: Annotated[bool, typer.Option("--version", is_eager=True, help="Print the version and end.")] = False,
) -> None:
    """Options that hold for every verb."""
    if show_version:
        typer.echo(f"kernel-lab {version('kernel-lab')}")
        raise typer.Exit
    context.obj = Settings(root_of(root), dashes=bool(context.obj))


# --- tasks and devices ----------------------------------------------------------------------------------------------


@app.command()
def list_tasks(context: typer.Context, json: AsJson = False) -> None:
    """The kernels to be written here."""
    _show(_done(context, lambda lab, _caller, _report: lab.list_tasks()), json)


@app.command()
def describe_task(context: typer.Context, task: Task, json: AsJson = False) -> None:
    """All that a kernel's author must know."""
    _show(_done(context, lambda lab, caller, _report: lab.describe_task(caller, task)), json)


@app.command()
def devices(context: typer.Context, json: AsJson = False) -> None:
    """Devices, toolkits and profilers of this machine."""
    _show(_done(context, lambda lab, _caller, _report: lab.devices()), json)


# --- measuring ------------------------------------------------------------------------------------------------------


@app.command()
def compile(context: typer.Context, task: Task, path: Folder, json: AsJson = False) -> None:
    """Build a solution; show the compiler's diagnostics."""
    _end(_done(context, lambda lab, caller, report: lab.compile(caller, task, path, None, report)), json)


@app.command()
def benchmark(
    context: typer.Context,
    task: Task,
    path: Folder,
    check: Annotated[bool, typer.Option("--check", help="Correctness only.")] = False,
    baseline: Annotated[str, typer.Option(help="Solution to compare with; else the task's first baseline.")] = "",
    fresh: Annotated[bool, typer.Option("--fresh", help="Draw all inputs anew.")] = False,
    json: AsJson = False,
) -> None:
    """Check a solution, time it against the baseline, record the result. Runs to the end."""
    mode: Mode = "check" if check else "full"
    _end(
        _done(
            context, lambda lab, caller, report: lab.benchmark(caller, task, path, mode, baseline, fresh, None, report)
        ),
        json,
    )


@app.command()
def profile(
    context: typer.Context,
    what: Annotated[list[str], typer.Argument(help="TASK PATH, or `-- program arguments`.", show_default=False)],
    workload: Annotated[str, typer.Option(help="uuid of a workload; else the first.")] = "",
    json: AsJson = False,
) -> None:
    """Find what limits a solution, or any program: profile TASK PATH, or profile -- program arguments."""
    command = what if _settings(context).dashes else []
    if not command and len(what) != 2:
        raise typer.BadParameter("give TASK and PATH, or `--` and a command line")
    task, path = ("", "") if command else what
    _end(
        _done(context, lambda lab, caller, report: lab.profile(caller, task, path, workload, command, None, report)),
        json,
    )


@app.command()
def get_result(
    context: typer.Context,
    id: Annotated[str, typer.Argument(help="Id of a job or an evaluation.", show_default=False)],
    json: AsJson = False,
) -> None:
    """Wait for a job of any server on this root, or show a recorded evaluation."""
    _end(_done(context, lambda lab, caller, report: lab.get_result(caller, id, None, report)), json)


@app.command()
def cancel(
    context: typer.Context,
    job: Annotated[str, typer.Argument(help="Id of a job.", show_default=False)],
    json: AsJson = False,
) -> None:
    """End a job, in whichever server it runs."""
    _show(_done(context, lambda lab, caller, _report: lab.cancel(caller, job)), json)


# --- lessons and history --------------------------------------------------------------------------------------------


@app.command()
def read_lessons(
    context: typer.Context,
    query: Annotated[str, typer.Argument(help="Words; none: all lessons.")] = "",
    slug: Annotated[str, typer.Option(help="One lesson, `topic/name`, in full.")] = "",
    limit: Annotated[int, typer.Option(min=1, max=50)] = 5,
    json: AsJson = False,
) -> None:
    """Find lessons by words, or read one."""
    _show(_done(context, lambda lab, caller, _report: lab.read_lessons(caller, query, slug, limit)), json)


@app.command()
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
    _show(_done(context, lambda lab, caller, _report: lab.add_lesson(caller, lesson)), json)


@app.command()
def read_history(
    context: typer.Context,
    run: Annotated[str, typer.Argument(help="Name of a run; none: what happened outside any.")] = "",
    after: Annotated[int, typer.Option(min=0, help="Only events with a higher number.")] = 0,
    limit: Annotated[int, typer.Option(min=1, max=200)] = 50,
    kind: Annotated[list[str] | None, typer.Option(help="Only this kind; repeatable.")] = None,
    json: AsJson = False,
) -> None:
    """What happened in a run, in order."""
    _show(_done(context, lambda lab, caller, _report: lab.read_history(caller, run, after, limit, kind or ())), json)


@app.command()
def verify(
    context: typer.Context, run: Annotated[str, typer.Argument(help="Name of a run.", show_default=False)]
) -> None:
    """Check a run's history chain, its records, and the sources of every evaluation."""
    lab = open_lab(_settings(context).root)
    problems = integrity.problems(lab.workspace, lab.ledger, run)
    for problem in problems:
        typer.echo(problem, err=True)
    if problems:
        raise typer.Exit(1)
    typer.echo(f"run {run}: history, records and sources are as they were written")


# --- roles and runs -------------------------------------------------------------------------------------------------


@app.command()
def spawn_role(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the role.", show_default=False)],
    charter: Annotated[Path, typer.Argument(help="Markdown file with YAML front matter.", exists=True, dir_okay=False)],
    agent: Annotated[str, typer.Option(help="What plays the role.")] = "tuner",
    evaluations: Annotated[int, typer.Option(min=0, help="Cap on its benchmarks; 0: none.")] = 0,
    minutes: Annotated[float, typer.Option(min=0, help="Cap on its wall time; 0: none.")] = 0,
    usd: Annotated[float, typer.Option(min=0, help="Cap on its spend; 0: none.")] = 0,
    json: AsJson = False,
) -> None:
    """Start a role on a task and stay until it ends; Ctrl-C ends it."""
    text = charter.read_text(encoding="utf-8")

    async def verb(lab: Lab, caller: Caller, report: Report) -> RoleAnswer:
        role = await lab.spawn_role(caller, name, text, agent, 1, evaluations, minutes, usd)
        return await _role_ended(lab, role.role, report)

    _role_end(_done(context, verb), json)


@app.command()
def wait_role(
    context: typer.Context,
    role: Annotated[str, typer.Argument(help="Id of a role.", show_default=False)],
    json: AsJson = False,
) -> None:
    """Wait until a role ends."""
    _role_end(_done(context, lambda lab, _caller, report: _role_ended(lab, role, report)), json)


@app.command()
def stop_role(
    context: typer.Context,
    role: Annotated[str, typer.Argument(help="Id of a role.", show_default=False)],
    json: AsJson = False,
) -> None:
    """End a role and every process of it."""
    _show(_done(context, lambda lab, caller, _report: lab.stop_role(caller, role)), json)


@app.command()
def evolve(
    context: typer.Context,
    task: Task,
    run: Annotated[str, typer.Option(help="Name of the run; the same name resumes it.")] = "",
    agent: Annotated[str, typer.Option(help="What plays the roles.")] = "tuner",
    evaluations: Annotated[int, typer.Option(min=1, help="Budget of benchmarks.")] = 60,
    minutes: Annotated[float, typer.Option(min=0, help="Budget of wall time.")] = 5.0,
    usd: Annotated[float, typer.Option(min=0, help="Budget of spend.")] = 0.0,
    json: AsJson = False,
) -> None:
    """Evolve a team of roles on one kernel until the budget or the ideas are used up."""
    # By name: the supervisor stands above this package and is only its caller everywhere else.
    supervisor = import_module("supervisor.__main__")
    raise typer.Exit(supervisor.evolve(task, run, agent, evaluations, minutes, usd, _settings(context).root, json))


@app.command()
def serve(
    http: Annotated[
        bool, typer.Option("--http", help="Streamable HTTP with a bearer token, instead of stdio.")
    ] = False,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0: any free port.")] = 0,
    root: Annotated[str, typer.Option(help="Workspace root.")] = "",
) -> None:
    """Serve the lab over MCP, for one client over stdio or for many over HTTP."""
    from mcp_server.cli_serve import serve as start

    start(["serve", *(["--http"] if http else []), "--host", host, "--port", str(port), "--root", root])


# --- what the verbs share -------------------------------------------------------------------------------------------


def _settings(context: typer.Context) -> Settings:
    return cast(Settings, context.obj)


def _done(context: typer.Context, verb: Verb[R]) -> R:
    """Open the lab, do the verb with progress on stderr, close the lab with every process of it."""

    async def job() -> R:
        lab = open_lab(_settings(context).root)
        with cli_text.progress() as report:
            try:
                return await verb(lab, lab.callers.local(), report)
            finally:
                await lab.close()

    try:
        return asyncio.run(job())
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


async def _role_ended(lab: Lab, role: str, report: Report) -> RoleAnswer:
    waited = 0.0
    while (answer := await lab.wait_role(role, 2.0)).state == "running":
        waited += 2.0
        await report(waited, answer.note or f"role {answer.name} is at work, {answer.evaluations} evaluations")
    return answer


def _show(answer: Record, as_json: bool) -> None:
    if as_json:
        typer.echo(cli_text.json_text(answer))
    else:
        cli_text.show(answer)


def _end(answer: JobAnswer, as_json: bool) -> None:
    """Show the answer; the exit status says whether the candidate is good."""
    if answer.state == "failed":
        raise LabError(answer.error)
    _show(answer, as_json)
    if not _good(answer):
        raise typer.Exit(1)


def _role_end(answer: RoleAnswer, as_json: bool) -> None:
    _show(answer, as_json)
    if answer.state == "crashed":
        raise typer.Exit(1)


def _good(answer: JobAnswer) -> bool:
    if answer.state not in ENDED or answer.state == "cancelled":
        return False
    if isinstance(answer, BenchmarkAnswer):
        return answer.status is Status.PASSED
    return not isinstance(answer, CompileAnswer) or bool(answer.ok)
