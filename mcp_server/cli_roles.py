"""The verbs that start, watch and end roles. Exit status 1: the role came to nothing."""

from pathlib import Path
from typing import Annotated

import typer

from mcp_server.budgets import Caps
from mcp_server.callers import Caller
from mcp_server.cli_verbs import AsJson, done, show
from mcp_server.jobs import Report
from mcp_server.lab import Lab
from mcp_server.schema import RoleAnswer

FAILED = ("crashed", "api_error", "auth", "quota", "refused", "stalled", "tools_missing")


def spawn_role(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the role.", show_default=False)],
    charter: Annotated[Path, typer.Argument(help="Markdown file with YAML front matter.", exists=True, dir_okay=False)],
    agent: Annotated[str, typer.Option(help="What plays the role: name or name:model, several by commas.")] = "tuner",
    evaluations: Annotated[int, typer.Option(min=0, help="Cap on its benchmarks; 0: none.")] = 0,
    minutes: Annotated[float, typer.Option(min=0, help="Cap on its wall time; 0: none.")] = 0,
    usd: Annotated[float, typer.Option(min=0, help="Cap on its spend; 0: none.")] = 0,
    tokens: Annotated[int, typer.Option(min=0, help="Cap on its tokens; 0: none.")] = 0,
    json: AsJson = False,
) -> None:
    """Start a role on a task and stay until it ends; Ctrl-C ends it."""
    text = charter.read_text(encoding="utf-8")
    caps = Caps(usd=usd, tokens=tokens, minutes=minutes, evaluations=evaluations)

    async def verb(lab: Lab, caller: Caller, report: Report) -> RoleAnswer:
        role = await lab.spawn_role(caller, name, text, agent, 1, caps)
        return await _role_ended(lab, role.role, report)

    _role_end(done(context, verb), json)


def wait_role(
    context: typer.Context,
    role: Annotated[str, typer.Argument(help="Id of a role.", show_default=False)],
    json: AsJson = False,
) -> None:
    """Wait until a role ends."""
    _role_end(done(context, lambda lab, _caller, report: _role_ended(lab, role, report)), json)


def stop_role(
    context: typer.Context,
    role: Annotated[str, typer.Argument(help="Id of a role.", show_default=False)],
    json: AsJson = False,
) -> None:
    """End a role and every process of it."""
    show(done(context, lambda lab, caller, _report: lab.stop_role(caller, role)), json)


async def _role_ended(lab: Lab, role: str, report: Report) -> RoleAnswer:
    waited = 0.0
    while (answer := await lab.wait_role(role, 2.0)).state == "running":
        waited += 2.0
        await report(waited, answer.note or f"role {answer.name} is at work, {answer.evaluations} evaluations")
    return answer


def _role_end(answer: RoleAnswer, as_json: bool) -> None:
    show(answer, as_json)
    if answer.state in FAILED:
        raise typer.Exit(1)
