"""Codex. Its `mcp add` knows none of the settings that the lab needs, so its TOML is edited."""

import json
import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import cast

import anyio
from anyio.streams.text import TextReceiveStream

from mcp_server.attach import toml
from mcp_server.attach.client import (
    ASK_S,
    CALL_MS,
    SERVER,
    START_S,
    TOKEN_VARIABLE,
    Client,
    ConfigFile,
    Connection,
    Scope,
    Seen,
    asked,
)
from toolkits.core import process
from toolkits.core.schema import Json

PASSED_ON = (
    "TMPDIR",  # where leases lie, so two terminals must mean the same
    "LD_LIBRARY_PATH",
    "CXX",
    "CUDA_HOME",
    "CUDA_PATH",
    "ROCM_PATH",
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
)
"""Codex passes on no other variables than PATH and HOME by itself."""
_QUESTIONS: tuple[Json, ...] = (
    {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": SERVER, "version": "1"}}},
    {"method": "initialized"},
    {"id": 2, "method": "mcpServerStatus/list", "params": {}},
)


def _entry(to: Connection) -> Json:
    """`required`: Codex waits for the tools before the first turn; `approve`: it asks the person for no call."""
    how: Json = {"url": to.url, "bearer_token_env_var": TOKEN_VARIABLE}
    if not to.url:
        how = {"command": to.command[0], "args": list(to.command[1:]), "env_vars": list(PASSED_ON)}
    return how | {
        "required": True,
        "startup_timeout_sec": START_S,
        "tool_timeout_sec": CALL_MS // 1000,
        "default_tools_approval_mode": "approve",
    }


def _file(scope: Scope) -> ConfigFile:
    home = Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex")
    folder = Path.cwd() / ".codex" if scope == "project" else home
    return ConfigFile(folder / "config.toml", "mcp_servers", toml)


async def _seen(scope: Scope) -> Seen:
    """Whether it reads the entry, then whether its app server, which really connects, lists tools of it."""
    done = await asked("codex", "mcp", "get", SERVER)
    if done.returncode != 0:
        untrusted = scope == "project" and "No MCP server" in done.output
        return Seen(state="pending" if untrusted else "failed", words=done.output.strip())
    with anyio.move_on_after(ASK_S), suppress(anyio.BrokenResourceError, ValueError):
        async for answer in _answers():
            if answer.get("id") == 2:
                return _judged(answer)
    return Seen(state="failed", words="its app server did not say which servers it reaches")


async def _answers() -> AsyncIterator[Json]:
    command = ["codex", "app-server"]
    async with process.started_process(
        command, cwd=Path.cwd(), stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as server:
        assert server.stdin and server.stdout
        await server.stdin.send("".join(f"{json.dumps(question)}\n" for question in _QUESTIONS).encode())
        rest = ""
        async for chunk in TextReceiveStream(server.stdout):
            *lines, rest = (rest + chunk).split("\n")
            for line in lines:
                yield cast(Json, json.loads(line))


def _judged(answer: Json) -> Seen:
    servers = cast(list[Json], answer.get("result", {}).get("data", []))
    ours = next((server for server in servers if server.get("name") == SERVER), Json())
    if ours.get("tools"):
        return Seen(state="connected")
    return Seen(state="failed", words=json.dumps(answer.get("error") or ours)[:300])


CLIENT = Client(
    title="Codex",
    program="codex",
    scopes=("user", "project"),
    entry=_entry,
    file=_file,
    seen=_seen,
    install="npm install -g @openai/codex",
    first_words=f"Use {SERVER}: list the tasks, then make kmeans_assign faster.",
    approval="Codex reads a project's configuration once you trust the project: start `codex` in this folder",
)
