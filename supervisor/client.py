"""The lab as the supervisor sees it: a server child, its tools as typed calls. Nothing here decides anything."""

import json
from pathlib import Path
from typing import TypeVar

import anyio
import httpx2
from mcp import Client, MCPError
from mcp.types import CallToolResult, TextContent
from pydantic import ValidationError

from mcp_server.schema import (
    BenchmarkAnswer,
    DevicesAnswer,
    HistoryAnswer,
    HistoryLine,
    JobAnswer,
    ProfileAnswer,
    RoleAnswer,
    RunAnswer,
    TaskDescription,
    TaskList,
)
from toolkits.core.errors import HarnessError, LabError
from toolkits.core.schema import Json, Record

CALL_PATIENCE_S = 120.0
"""The server answers within 50 s whatever happens; past this it is hung."""
WAIT_S = 45.0
PAGE = 200

BROKEN: tuple[type[Exception], ...] = (MCPError, httpx2.HTTPError, anyio.ClosedResourceError, anyio.BrokenResourceError)
"""What a connection raises when the other side is gone."""

Answer = TypeVar("Answer", bound=Record)
Job = TypeVar("Job", bound=JobAnswer)


class Lab:
    """Typed calls; a tool's error is a LabError, the death of the server a HarnessError."""

    def __init__(self, client: Client, log: Path) -> None:
        self._client = client
        self._log = log
        self._calls: set[anyio.CancelScope] = set()
        self.ended = ""
        """How the server ended; empty while it lives."""

    async def list_tasks(self) -> TaskList:
        return await self._call(TaskList, "list_tasks")

    async def describe_task(self, task: str) -> TaskDescription:
        return await self._call(TaskDescription, "describe_task", task=task)

    async def devices(self) -> DevicesAnswer:
        return await self._call(DevicesAnswer, "devices")

    async def open_run(self, run: str, task: str, config: Record) -> RunAnswer:
        return await self._call(RunAnswer, "open_run", run=run, task=task, config=config.model_dump_json())

    async def evaluate(self, task: str, path: str, *, fresh: bool = False) -> BenchmarkAnswer:
        """A full benchmark, waited for to its end."""
        first = await self._call(
            BenchmarkAnswer, "benchmark", task=task, path=path, mode="full", fresh=fresh, wait_s=WAIT_S
        )
        return await self._done(BenchmarkAnswer, first)

    async def evaluation(self, id: str) -> BenchmarkAnswer:
        """The record of an evaluation."""
        return await self._call(BenchmarkAnswer, "get_result", id=id, wait_s=0)

    async def profile(self, task: str, path: str, patience_s: float) -> ProfileAnswer:
        """A profile, or what became of it when it takes longer than `patience_s` and is cancelled."""
        wait_s = min(WAIT_S, patience_s)
        answer = await self._call(ProfileAnswer, "profile", task=task, path=path, wait_s=wait_s)
        if answer.state in ("queued", "running"):
            return await self._call(ProfileAnswer, "cancel", job=answer.job)
        return answer

    async def history(self, after: int) -> list[HistoryLine]:
        """Every row of the run after `after`."""
        rows: list[HistoryLine] = []
        while True:
            page = await self._call(HistoryAnswer, "read_history", after=after, limit=PAGE)
            rows += page.events
            after = page.next_after
            if not page.more:
                return rows

    async def record(self, kind: str, body: Json) -> HistoryLine:
        return await self._call(HistoryLine, "write_history", kind=kind, body=json.dumps(body))

    async def spawn_role(
        self, name: str, charter: str, agent: str, team: int, evaluations: int, usd: float, tokens: int = 0
    ) -> RoleAnswer:
        caps = {"evaluations": evaluations, "usd": usd, "tokens": tokens}
        return await self._call(RoleAnswer, "spawn_role", name=name, charter=charter, agent=agent, team=team, **caps)

    async def wait_role(self, role: str, wait_s: float) -> RoleAnswer:
        return await self._call(RoleAnswer, "wait_role", role=role, wait_s=wait_s)

    async def stop_role(self, role: str) -> RoleAnswer:
        return await self._call(RoleAnswer, "stop_role", role=role)

    async def _done(self, model: type[Job], answer: Job) -> Job:
        while answer.state in ("queued", "running"):
            answer = await self._call(model, "get_result", id=answer.job, wait_s=WAIT_S)
        if answer.state != "done":
            raise LabError(answer.error or answer.summary)
        return answer

    async def _call(self, model: type[Answer], tool: str, **arguments: object) -> Answer:
        result = await self._send(tool, arguments)
        if result.is_error:
            raise LabError(_text(result).removeprefix(f"Error executing tool {tool}: "))
        try:
            return model.model_validate(result.structured_content)
        except ValidationError as error:
            raise HarnessError(f"the server's answer to {tool} is not a {model.__name__}: {error}") from error

    async def _send(self, tool: str, arguments: Json) -> CallToolResult:
        failure = ""
        with anyio.move_on_after(CALL_PATIENCE_S) as scope:
            self._calls.add(scope)
            try:
                if not self.ended:
                    return await self._client.call_tool(tool, arguments)
            except BROKEN as error:
                failure = f"{type(error).__name__} {error}"
                await anyio.sleep(0.2)  # a dying server closes its sockets before it can be seen to be dead
            finally:
                self._calls.discard(scope)
        failure = self.ended or failure or f"no answer within {CALL_PATIENCE_S:.0f} s"
        raise HarnessError(f"{tool}: {failure}; {how_to_resume(self._log)}")

    def server_ended(self, returncode: int) -> None:
        """End every call in flight: no answer will come."""
        how = f"by signal {-returncode}" if returncode < 0 else f"with exit status {returncode}"
        self.ended = f"the lab's server ended {how}"
        for scope in self._calls:
            scope.cancel()


def _text(result: CallToolResult) -> str:
    parts = [block.text for block in result.content if isinstance(block, TextContent)]
    return "\n".join(parts) or "the tool failed and said nothing"


def how_to_resume(log: Path) -> str:
    return f"its log is {log}. The same command resumes the run."
