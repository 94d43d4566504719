"""What roles without a model share: a connection to the lab as an MCP client, and a transcript on standard output."""

import json
import os
import signal
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import anyio
import httpx2
from anyio.abc import TaskStatus
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, TextContent
from pydantic import ValidationError

from mcp_server.agents.agent import AgentEvent, Ended, Ending, Exit
from mcp_server.charter import Charter, parse
from toolkits.core.errors import InvalidInput, LabError
from toolkits.core.schema import Json, Record

WAIT_S = 45.0
CALL_TIMEOUT_S = 300.0
"""No tool holds a call longer than its own wait; past this the server counts as gone."""
SHORT_CHARACTERS = 600
FAILED = ("crashed", "tools_missing")
"""Endings with an exit status of 1."""


class Refused(LabError):
    """The lab answered a call with an error; the message is the lab's."""

    @property
    def budget(self) -> bool:
        """Whether the lab grants no more evaluations: a message is all that reaches a client."""
        return "evaluations it was given" in str(self)


@dataclass(frozen=True)
class Outcome:
    """How a role ended: the last line of its transcript."""

    ending: Ending
    note: str


class _Line(Record):
    """A line of a transcript as far as the lab reads it."""

    type: str
    text: str = ""
    ending: Ending | None = None
    note: str = ""


class Lab:
    """The lab's tools. Every call and its short result become lines of the transcript."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def call(self, tool: str, arguments: Json) -> Json:
        """The structured result of a tool; raises Refused with the lab's own words."""
        answer = await self.answer(tool, arguments)
        if answer.is_error:
            raise Refused(text_of(answer))
        return answer.structured_content or {}

    async def answer(self, tool: str, arguments: Json) -> CallToolResult:
        emit("tool_call", tool=tool, arguments=arguments)
        answer = await self._client.call_tool(tool, arguments, read_timeout_seconds=CALL_TIMEOUT_S)
        emit("tool_result", tool=tool, is_error=answer.is_error, result=_short(answer))
        return answer

    async def finished(self, tool: str, arguments: Json) -> Json:
        """The structured result of a tool that starts a job, once the job has ended."""
        result = await self.call(tool, arguments)
        while result.get("state") in ("queued", "running") and "job" in result:
            result = await self.call("get_result", {"id": result["job"], "wait_s": WAIT_S})
        return result


Work = Callable[[Lab, Charter, Path], Awaitable[Outcome]]
"""What a role does: it gets the lab, its charter and its folder."""


def play(work: Work) -> int:
    """Run a role to its end, write its result line and give its exit status."""
    outcome = Outcome("crashed", "")
    try:
        outcome = anyio.run(_until_interrupted, work)
    except* LabError as problems:
        outcome = Outcome("crashed", _words(problems))
    except* (MCPError, httpx2.HTTPError, OSError, anyio.ClosedResourceError, anyio.BrokenResourceError) as problems:
        outcome = Outcome("tools_missing", f"the connection to the lab is lost: {_words(problems)}")
    emit("result", ending=outcome.ending, note=outcome.note)
    return int(outcome.ending in FAILED)


async def _until_interrupted(work: Work) -> Outcome:
    folder = role_folder()
    charter = parse((folder / "charter.md").read_text(encoding="utf-8"))
    outcome = Outcome("stopped", "interrupted")
    async with connected() as lab, anyio.create_task_group() as tasks:
        await tasks.start(_cancel_on_sigint, tasks.cancel_scope)
        outcome = await work(lab, charter, folder)
        tasks.cancel_scope.cancel()
    return outcome


async def _cancel_on_sigint(scope: anyio.CancelScope, *, task_status: TaskStatus[None]) -> None:
    with anyio.open_signal_receiver(signal.SIGINT) as signals:
        task_status.started()
        async for _ in signals:
            scope.cancel()


def _words(problem: BaseException) -> str:
    """What went wrong first, in one line."""
    if isinstance(problem, BaseExceptionGroup):
        return _words(cast("BaseExceptionGroup[BaseException]", problem).exceptions[0])
    return str(problem) or type(problem).__name__


@asynccontextmanager
async def connected() -> AsyncGenerator[Lab]:
    """The lab that the environment names."""
    timeout = httpx2.Timeout(30.0, read=CALL_TIMEOUT_S)
    headers = {"Authorization": f"Bearer {os.environ['KERNEL_LAB_TOKEN']}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=timeout, trust_env=False) as http,
        Client(streamable_http_client(os.environ["KERNEL_LAB_URL"], http_client=http)) as client,
    ):
        yield Lab(client)


def emit(type: str, **fields: object) -> None:
    """Add one line to the transcript."""
    sys.stdout.write(json.dumps({"type": type, **fields}, default=str) + "\n")
    sys.stdout.flush()


class Program:
    """An attempt whose program is a module of the lab that ends in `play`."""

    environment: dict[str, str] = {}

    def __init__(self, module: str) -> None:
        self.command = [sys.executable, "-P", "-m", module]
        self._result: Outcome | None = None

    def hear(self, line: str) -> list[AgentEvent]:
        """The meaning of a line that `emit` wrote."""
        try:
            told = _Line.model_validate_json(line, extra="ignore")
        except ValidationError:
            return []
        if told.type == "result" and told.ending:
            self._result = Outcome(told.ending, told.note)
        return [AgentEvent(kind="progress", text=told.text)] if told.type == "progress" else []

    def poll(self) -> list[AgentEvent]:
        return []

    def ended(self, exit: Exit) -> Ended:
        """A role that ends without a result line has crashed, whatever its exit status, and so has one that lies.

        InvalidInput: it says itself that it failed, and would again.
        """
        errors = exit.errors[-SHORT_CHARACTERS:].strip()
        if self._result is None:
            return Ended(ending="crashed", note=f"{exit.how} and no result line: {errors}", evidence=[exit.how])
        ending, note = self._result.ending, self._result.note
        if ending == "crashed":
            raise InvalidInput(note)
        if exit.returncode != 0 and ending not in FAILED:
            ending, note = "crashed", f"{note} ({exit.how})"
        return Ended(ending=ending, note=note, evidence=[exit.how])


def role_folder() -> Path:
    if folder := os.environ.get("KERNEL_LAB_ROLE_DIR"):
        return Path(folder)
    raise InvalidInput("KERNEL_LAB_ROLE_DIR is not set: this program is started by spawn_role")


def text_of(answer: CallToolResult) -> str:
    return "\n".join(block.text for block in answer.content if isinstance(block, TextContent))


def _short(answer: CallToolResult) -> str:
    structured: Json = answer.structured_content or {}
    text = str(structured.get("summary") or text_of(answer))
    return text if len(text) <= SHORT_CHARACTERS else f"{text[:SHORT_CHARACTERS]} ..."
