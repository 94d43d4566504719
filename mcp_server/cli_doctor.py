"""The verb that says what works here. Exit status 1: something that is needed is missing."""

import asyncio
from typing import Literal

import typer
from rich.console import Console
from rich.text import Text

from mcp_server.cli_text import WIDTH, json_text
from mcp_server.cli_verbs import AsJson, settings_of
from mcp_server.doctor import DoctorAnswer, examine

MARKS: dict[Literal["ok", "missing", "note"], tuple[str, str]] = {
    "ok": ("ok", "green"),
    "missing": ("NO", "red"),
    "note": ("--", "yellow"),
}
AREA, MARK, NAME = 10, 3, 23
"""Widths of columns; the rest is for what was seen."""


def doctor(context: typer.Context, json: AsJson = False) -> None:
    """Try everything that the lab needs here, the sandbox by attacking it; say what is missing and the remedy."""
    answer = asyncio.run(examine(settings_of(context).root))
    if json:
        typer.echo(json_text(answer))
    else:
        _show(answer)
    if not answer.ok:
        raise typer.Exit(1)


def _show(answer: DoctorAnswer) -> None:
    console = Console(width=WIDTH, highlight=False)
    area = ""
    for check in answer.checks:
        mark, style = MARKS[check.state]
        head = Text.assemble(f"{check.area if check.area != area else '':{AREA}}", (f"{mark:{MARK}}", style))
        _wrapped(console, head + Text(f"{check.name:{NAME}}"), Text(" ".join(check.seen.split())))
        if check.remedy:
            _wrapped(console, Text(" " * (AREA + MARK)), Text(f"remedy: {check.remedy}", style="dim"))
        area = check.area
    missing = sum(check.state == "missing" for check in answer.checks)
    verdict = "all that is needed works" if answer.ok else f"{missing} of what is needed does not work"
    console.print(f"{verdict}  (ok: works   NO: needed and missing   --: to know)")


def _wrapped(console: Console, head: Text, words: Text) -> None:
    """Whole, under each other, to the right of the head: a reason or a remedy is to be read to its end."""
    for line in words.wrap(console, WIDTH - len(head)):
        line.rstrip()
        console.print(head + line)
        head = Text(" " * len(head))
