"""What the verbs of the CLI share: the lab opened and closed around one call, the answer shown, the exit status."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar, cast

import typer

from mcp_server import cli_text
from mcp_server.callers import Caller
from mcp_server.jobs import Report
from mcp_server.lab import Lab
from mcp_server.serving import open_lab
from toolkits.core.schema import Record

R = TypeVar("R", bound=Record)
Verb = Callable[[Lab, Caller, Report], Awaitable[R]]

Task = Annotated[str, typer.Argument(help="Name of a task.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print exactly the structured result.")]


@dataclass(frozen=True)
class Settings:
    root: Path
    dashes: bool
    """The command line has a `--`: what follows it is a command of the user's."""


def settings_of(context: typer.Context) -> Settings:
    return cast(Settings, context.obj)


def done(context: typer.Context, verb: Verb[R]) -> R:
    """Open the lab, do the verb with progress on stderr, close the lab with every process of it."""

    async def job() -> R:
        lab = open_lab(settings_of(context).root)
        with cli_text.progress() as report:
            try:
                return await verb(lab, lab.callers.local(), report)
            finally:
                await lab.close()

    try:
        return asyncio.run(job())
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def show(answer: Record, as_json: bool) -> None:
    if as_json:
        typer.echo(cli_text.json_text(answer))
    else:
        cli_text.show(answer)
