"""The program of `acp`: starts an agent, hands it the charter and the lab, and tells what it does line by line.

Runs in the role's own process only. The agent is in the same process group, so that whoever ends one ends both.
"""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import Process
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import cast

from acp import PROTOCOL_VERSION, Client, RequestError, spawn_agent_process, text_block
from acp.client.connection import ClientSideConnection
from acp.core import DEFAULT_STDIO_BUFFER_LIMIT_BYTES
from acp.schema import (
    AgentCapabilities,
    ClientCapabilities,
    FileSystemCapabilities,
    HttpHeader,
    HttpMcpServer,
    Implementation,
)
from acp.schema import Usage as AcpUsage

from mcp_server.agents.acp import Job
from mcp_server.agents.acp_client import LabClient
from mcp_server.agents.acp_endings import of_error, of_turn
from mcp_server.agents.agent import Ended, Usage
from mcp_server.agents.lab_probe import lab_trouble
from mcp_server.agents.own_program import tell, tell_result
from mcp_server.agents.worktree_files import WorktreeFiles

GRACE_S = 5.0
"""For an agent to end its turn after it was asked to."""
LAST_WORDS_S = 1.0
"""For what an agent that is gone has still sent."""
NUDGES = 10
GO_ON = "That call is not permitted here. The lab's tools and files in your working directory are. Go on with those."


class Turn:
    """One prompt to one agent, up to its end."""

    def __init__(self, job: Job, token: str) -> None:
        self._job = job
        headers = [HttpHeader(name="Authorization", value=f"Bearer {token}")]
        self._lab = HttpMcpServer(type="http", name="lab", url=job.url, headers=headers)
        self._costs = Costs(job.costs)
        self._client = LabClient(WorktreeFiles(job.worktree))
        self._session = ""

    async def end(self, stop: asyncio.Event) -> Ended:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KERNEL_LAB_")}
        async with spawn_agent_process(
            cast(Client, self._client),  # terminals are not offered, so the methods for them are not asked for
            *self._job.command,
            env=environment | self._job.environment,
            cwd=self._job.worktree,
            transport_kwargs={"stderr": None, "limit": DEFAULT_STDIO_BUFFER_LIMIT_BYTES},
        ) as (agent, process):
            talk = asyncio.ensure_future(self._talk(agent))
            await self._until_over(talk, agent, process, stop)
            talk.cancel()
            ended = await _settled(talk, process)
        self._costs.remember(self._session, self._client.usd)
        return Ended(ending="stopped", note="interrupted") if stop.is_set() else ended

    async def _until_over(
        self, talk: asyncio.Future[Ended], agent: ClientSideConnection, process: Process, stop: asyncio.Event
    ) -> None:
        gone, stopped = asyncio.ensure_future(process.wait()), asyncio.ensure_future(stop.wait())
        await asyncio.wait({talk, gone, stopped}, return_when=asyncio.FIRST_COMPLETED)
        if stop.is_set() and self._session and not gone.done():
            with suppress(ConnectionError):
                await agent.cancel(session_id=self._session)
                await asyncio.wait({talk, gone}, timeout=GRACE_S, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({talk}, timeout=LAST_WORDS_S)
        gone.cancel()
        stopped.cancel()

    async def _talk(self, agent: ClientSideConnection) -> Ended:
        files = FileSystemCapabilities(read_text_file=True, write_text_file=True)
        can = await agent.initialize(
            protocol_version=PROTOCOL_VERSION,
            client_capabilities=ClientCapabilities(fs=files, terminal=False),
            client_info=Implementation(name="kernel-lab", version=version("kernel-lab")),
        )
        of_agent = can.agent_capabilities or AgentCapabilities()
        if not (of_agent.mcp_capabilities and of_agent.mcp_capabilities.http):
            return Ended(ending="tools_missing", note="this agent cannot use an MCP server over HTTP")
        self._session = await self._open(agent, of_agent)
        tell("session", text=self._session)
        self._client.go(self._costs.of(self._session))
        return await self._prompt(agent, self._job.prompt, NUDGES)

    async def _prompt(self, agent: ClientSideConnection, text: str, nudges: int) -> Ended:
        """A turn; agents that end theirs where a permission is denied are told to go on without it."""
        client = self._client
        client.rejected = False
        answer = await agent.prompt(session_id=self._session, prompt=[text_block(text)])
        if answer.usage:
            tell("cost", usage=_usage(answer.usage, self._job.name), usd_total=client.usd_here)
        if not client.rejected or answer.stop_reason != "end_turn":
            return of_turn(answer.stop_reason, client.text, client.worked)
        if nudges:
            return await self._prompt(agent, GO_ON, nudges - 1)
        return Ended(ending="crashed", note="the agent stops at calls that are not permitted, again and again")

    async def _open(self, agent: ClientSideConnection, can: AgentCapabilities) -> str:
        """The session to go on with where the agent can, else a new one; its id."""
        cwd, old, of_session = str(self._job.worktree), self._job.session, can.session_capabilities
        if old and of_session and of_session.resume:
            await agent.resume_session(cwd=cwd, session_id=old, mcp_servers=[self._lab])
        elif old and can.load_session:
            await agent.load_session(cwd=cwd, session_id=old, mcp_servers=[self._lab])
        else:
            return (await agent.new_session(cwd=cwd, mcp_servers=[self._lab])).session_id
        return old


class Costs:
    """What sessions had cost at the end of an attempt: agents count over a session's whole life."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "costs.json"

    def of(self, session: str) -> float:
        return self._read().get(session, 0.0)

    def remember(self, session: str, usd: float | None) -> None:
        if session and usd is not None:
            self._file.write_text(json.dumps(self._read() | {session: usd}), encoding="utf-8")

    def _read(self) -> dict[str, float]:
        return json.loads(self._file.read_text(encoding="utf-8")) if self._file.exists() else {}


async def _settled(talk: asyncio.Future[Ended], process: Process) -> Ended:
    """What the conversation came to; one that broke off is a crash of the agent's."""
    try:
        return await talk
    except RequestError as error:
        return of_error(error.code, f"{error} {json.dumps(error.data)}" if error.data else str(error))
    except (asyncio.CancelledError, ConnectionError) as error:
        how = "runs on" if process.returncode is None else f"exit status {process.returncode}"
        return Ended(ending="crashed", note=f"the agent's process no longer answers ({how}) {error}".strip())


def _usage(told: AcpUsage, model: str) -> Usage:
    read, write = told.cached_read_tokens or 0, told.cached_write_tokens or 0
    output = max(told.total_tokens - told.input_tokens - read - write, told.output_tokens)
    return Usage(
        model=model,
        input_tokens=told.input_tokens,
        cache_read_tokens=read,
        cache_write_tokens=write,
        output_tokens=output,
    )


async def play(job: Job, token: str, stop: asyncio.Event) -> Ended:
    """The attempt, if the lab is there; an agent whose lab is gone by the end worked without its tools."""
    if trouble := await lab_trouble(job.url, token):
        return Ended(ending="tools_missing", note=f"the lab is gone: {trouble}")
    ended = await Turn(job, token).end(stop)
    if ended.ending not in ("stopped", "auth", "quota") and (trouble := await lab_trouble(job.url, token)):
        return Ended(ending="tools_missing", note=f"the lab is gone: {trouble}", evidence=[ended.note])
    return ended


async def until_interrupted(job: Job, token: str) -> Ended:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop.set)
    return await play(job, token, stop)


def main() -> int:
    job = Job.model_validate_json(Path(sys.argv[1]).read_text(encoding="utf-8"))
    return tell_result(asyncio.run(until_interrupted(job, os.environ.pop("KERNEL_LAB_TOKEN"))))


if __name__ == "__main__":
    sys.exit(main())
