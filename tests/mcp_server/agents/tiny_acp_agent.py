"""A small agent behind the Agent Client Protocol for tests: its prompt says, as JSON, what it does in a turn.

Told anything else it does the same once more.
"""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any, cast

import httpx2
from acp import PROTOCOL_VERSION, Agent, Client, RequestError, run_agent, text_block, update_agent_message
from acp.schema import (
    AgentCapabilities,
    AllowedOutcome,
    Cost,
    HttpMcpServer,
    InitializeResponse,
    McpCapabilities,
    NewSessionResponse,
    PermissionOption,
    PromptResponse,
    TextContentBlock,
    ToolCallStart,
    ToolCallUpdate,
    Usage,
    UsageUpdate,
)
from mcp import Client as McpClient
from mcp.client.streamable_http import streamable_http_client

OPTIONS = [
    PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
    PermissionOption(option_id="no", name="No", kind="reject_once"),
]


class TinyAgent:
    """Every instruction of the prompt is one method here, called with its arguments."""

    def on_connect(self, conn: Client) -> None:
        self._client = conn
        self._session = "tiny-1"
        self._cancelled = asyncio.Event()
        self._instructions: list[list[Any]] = []
        self._answer = PromptResponse(stop_reason="end_turn")

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        can = AgentCapabilities(mcp_capabilities=McpCapabilities(http="--no-http" not in sys.argv))
        return InitializeResponse(protocol_version=PROTOCOL_VERSION, agent_capabilities=can)

    async def new_session(self, cwd: str, mcp_servers: list[HttpMcpServer], **_: Any) -> NewSessionResponse:
        self._lab = mcp_servers[0]
        return NewSessionResponse(session_id=self._session)

    async def cancel(self, session_id: str, **_: Any) -> None:
        Path("cancelled").touch()
        self._cancelled.set()

    async def prompt(self, session_id: str, prompt: list[TextContentBlock], **_: Any) -> PromptResponse:
        if prompt[0].text.startswith("["):
            self._instructions = json.loads(prompt[0].text)
        for instruction, *arguments in self._instructions:
            await getattr(self, f"do_{instruction}")(*arguments)
        return self._answer

    async def do_say(self, text: str) -> None:
        await self._client.session_update(self._session, update_agent_message(text_block(text)))

    async def do_lab(self, tool: str) -> None:
        """Really call the lab, as an agent that was given its address."""
        await self._client.session_update(
            self._session, ToolCallStart(session_update="tool_call", tool_call_id=tool, title=f"mcp__lab__{tool}")
        )
        headers = {header.name: header.value for header in self._lab.headers}
        async with (
            httpx2.AsyncClient(headers=headers) as http,
            McpClient(streamable_http_client(self._lab.url, http_client=http)) as lab,
        ):
            await lab.call_tool(tool, {})

    async def do_ask(self, kind: str, title: str, path: str = "") -> None:
        """Ask for permission and note the answer in a file of the worktree."""
        raw = {"path": path} if path else {}
        call = ToolCallUpdate.model_validate({"tool_call_id": "t", "kind": kind, "title": title, "raw_input": raw})
        answer = await self._client.request_permission(self._session, call, OPTIONS)
        said = answer.outcome.option_id if isinstance(answer.outcome, AllowedOutcome) else "cancelled"
        with Path("answers").open("a", encoding="utf-8") as file:
            file.write(f"{kind} {title} {path}: {said}\n")

    async def do_read(self, path: str) -> None:
        """Through the client, as agents do whose editor may hold unsaved text."""
        try:
            read = (await self._client.read_text_file(self._session, path, line=2, limit=1)).content
        except RequestError as error:
            read = str(error)
        Path("read").write_text(read, encoding="utf-8")

    async def do_write(self, path: str, content: str) -> None:
        await self._client.write_text_file(self._session, path, content)

    async def do_cost(self, amount: float) -> None:
        cost = Cost(amount=amount, currency="USD")
        update = UsageUpdate(session_update="usage_update", used=10, size=100, cost=cost)
        await self._client.session_update(self._session, update)

    async def do_stop(self, reason: str) -> None:
        usage = Usage(total_tokens=160, input_tokens=100, output_tokens=50, thought_tokens=10)
        self._answer = PromptResponse.model_validate({"stop_reason": reason, "usage": usage})

    async def do_fail(self, code: int, message: str) -> None:
        raise RequestError(code, message)

    async def do_die(self) -> None:
        os._exit(7)

    async def do_hang(self) -> None:
        await self._cancelled.wait()
        self._answer = PromptResponse(stop_reason="cancelled")


if __name__ == "__main__":
    asyncio.run(run_agent(cast(Agent, TinyAgent())))
