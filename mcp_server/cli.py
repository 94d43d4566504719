"""The verbs of `kernel-lab`: the same functions as the MCP tools, for a person at a terminal.

Exit status: 0 done, 1 the candidate or the check failed, 2 the call itself was wrong, 130 interrupted.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from mcp_server import cli_attach, cli_doctor, cli_measure, cli_notes, cli_roles
from mcp_server.agents.agent import get_agent
from mcp_server.agents.specs import read_specs
from mcp_server.cli_serve import root_of
from mcp_server.cli_text import WIDTH
from mcp_server.cli_verbs import AsJson, Settings, Task, settings_of
from mcp_server.wire import visible
from toolkits.core.errors import LabError

VERBS = (
    cli_doctor.doctor,
    cli_attach.attach,
    cli_attach.detach,
    cli_notes.list_tasks,
    cli_notes.describe_task,
    cli_notes.devices,
    cli_measure.compile,
    cli_measure.benchmark,
    cli_measure.profile,
    cli_measure.get_result,
    cli_measure.cancel,
    cli_notes.read_lessons,
    cli_notes.add_lesson,
    cli_notes.read_history,
    cli_notes.plot,
    cli_notes.verify,
    cli_roles.spawn_role,
    cli_roles.wait_role,
    cli_roles.stop_role,
)
"""In the order in which --help lists them; `evolve` and `serve` follow."""

app = typer.Typer(
    name="kernel-lab",
    help="A laboratory for kernels: compile, check, time, profile, and keep what was learned.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"terminal_width": WIDTH},
)


def run(words: Sequence[str]) -> None:
    """Run one verb and end the process with its status."""
    try:
        app(args=list(words), prog_name="kernel-lab", obj="--" in words)
    except LabError as error:
        Console(stderr=True, soft_wrap=True).print(Text(visible(f"kernel-lab: {error}"), style="red"))
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


for verb in VERBS:
    app.command()(verb)


@app.command()
def evolve(
    context: typer.Context,
    task: Task,
    run: Annotated[str, typer.Option(help="Name of the run; the same name resumes it.")] = "",
    agent: Annotated[str, typer.Option(help="What plays the roles.")] = "tuner",
    evaluations: Annotated[int, typer.Option(min=1, help="Budget of benchmarks.")] = 60,
    minutes: Annotated[float, typer.Option(min=0, help="Budget of wall time.")] = 5.0,
    usd: Annotated[float, typer.Option(min=0, help="Budget of spend.")] = 0.0,
    tokens: Annotated[int, typer.Option(min=0, help="Budget of tokens; 0: none.")] = 0,
    json: AsJson = False,
) -> None:
    """Evolve a team of roles on one kernel until the budget or the ideas are used up."""
    for spec in read_specs(agent):
        get_agent(spec.name)  # a run is frozen when it is created: a misspelt agent must not reach it
    # By name: the supervisor stands above this package and is only its caller everywhere else.
    supervisor = import_module("supervisor.__main__")
    root = settings_of(context).root
    raise typer.Exit(supervisor.evolve(task, run, agent, evaluations, minutes, usd, root, json, tokens=tokens))


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
