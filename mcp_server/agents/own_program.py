"""What agents whose program is the lab's own have in common: the lines that the program tells, and what they mean.

Knows no model, no protocol and no client: the programs themselves are modules of their own, with heavy imports.
"""

import json
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal

import anyio
from anyio.abc import TaskStatus
from pydantic import ValidationError

from mcp_server.agents.agent import AgentEvent, Ended, Ending, Exit, Usage
from toolkits.core.schema import Record

ERROR_CHARACTERS = 600
LINE_CHARACTERS = 200
RESULT_CHARACTERS = 600


class Told(Record, extra="ignore"):
    """One line of such a program. What only the transcript needs (calls, results) has further fields."""

    type: Literal["session", "reply", "cost", "tool_call", "tool_result", "retry", "note", "result"]
    text: str = ""
    """Of a session its id, else what is said or done."""
    tool: str = ""
    usage: Usage | None = None
    """Of a reply: what this one used."""
    usd_total: float | None = None
    """Of a cost: all of this attempt so far, as the agent counts it."""
    ended: Ended | None = None
    """Of the result, which is the last line."""


def tell(type: str, **fields: object) -> None:
    """Write one line of the program, at once: the lab books what it spends while it works."""
    sys.stdout.write(json.dumps({"type": type, **fields}, default=_plain) + "\n")
    sys.stdout.flush()


def tell_result(ended: Ended) -> int:
    """Write the last line; the exit status that goes with it."""
    tell("result", ended=ended)
    return int(ended.ending == "crashed")


async def until_interrupted(work: Callable[[], Awaitable[Ended]]) -> Ended:
    """What the work comes to, or `stopped` after a SIGINT, which cancels it."""
    ended = Ended(ending="stopped", note="interrupted")
    async with anyio.create_task_group() as tasks:
        await tasks.start(_cancel_on_sigint, tasks.cancel_scope)
        ended = await work()
        tasks.cancel_scope.cancel()
    return ended


async def _cancel_on_sigint(scope: anyio.CancelScope, *, task_status: TaskStatus[None]) -> None:
    with anyio.open_signal_receiver(signal.SIGINT) as signals:
        task_status.started()
        async for _ in signals:
            scope.cancel()


class ProgramAttempt:
    """An attempt that is understood by its lines alone; the exit status can only make it worse."""

    def __init__(self, module: str, job: Path, environment: dict[str, str]) -> None:
        self.command = [sys.executable, "-P", "-m", module, str(job)]
        self.environment = environment
        self._result: Ended | None = None

    def hear(self, line: str) -> list[AgentEvent]:
        try:
            told = Told.model_validate_json(line)
        except ValidationError:
            return []
        self._result = told.ended or self._result
        return _events(told)

    def poll(self) -> list[AgentEvent]:
        return []

    def ended(self, exit: Exit) -> Ended:
        errors = exit.errors.strip()[-ERROR_CHARACTERS:]
        evidence = [exit.how, *([errors] if errors else [])]
        if self._result is None:
            return Ended(ending="crashed", note=f"no result line, {exit.how}: {errors}", evidence=evidence)
        said = self._result
        ending: Ending = "crashed" if said.ending == "done" and exit.returncode != 0 else said.ending
        return said.model_copy(update={"ending": ending, "evidence": [*said.evidence, *evidence]})


def _events(told: Told) -> list[AgentEvent]:
    match told.type:
        case "session":
            return [AgentEvent(kind="session", text=told.text)]
        case "reply":
            said = [AgentEvent(kind="progress", text=one_line(told.text))] if told.text.strip() else []
            return [AgentEvent(kind="spend", usage=told.usage), *said]
        case "cost":
            return [AgentEvent(kind="spend", usage=told.usage, usd_total=told.usd_total)]
        case "tool_call":
            return [AgentEvent(kind="progress", text=f"calls {told.tool}")]
        case "retry" | "note":
            return [AgentEvent(kind="progress", text=one_line(told.text))]
        case "tool_result" | "result":
            return []


def one_line(text: str, characters: int = LINE_CHARACTERS) -> str:
    """The beginning of a text, for those who follow a role."""
    line = " ".join(text.split())
    return line if len(line) <= characters else f"{line[:characters]} ..."


def _plain(value: object) -> object:
    return value.model_dump(mode="json") if isinstance(value, Record) else str(value)
