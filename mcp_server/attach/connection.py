"""Whether the lab answers at all, told by a client of ours that connects as the entry says. Changes nothing."""

import os
import shlex
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TextIO

import anyio
import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from mcp_server.attach.client import START_S, TOKEN_VARIABLE, Connection, bearer
from toolkits.core.errors import LabError

BROKEN: tuple[type[Exception], ...] = (MCPError, httpx2.HTTPError, OSError, TimeoutError, anyio.ClosedResourceError)
LAST_CHARACTERS = 400


def to_started(root: Path) -> Connection:
    """This installation's own server, on that workspace, started by whoever connects."""
    root = root.absolute()
    return Connection(command=(sys.executable, "-P", "-m", "mcp_server", "serve", "--root", str(root)))


async def tools_at(to: Connection) -> list[str]:
    """The names of the tools that it offers; raises LabError with the remedy where it does not answer."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        try:
            with anyio.fail_after(START_S):
                async with _client(to, errors) as client:
                    return [tool.name for tool in (await client.list_tools()).tools]
        except* BROKEN as group:
            errors.seek(0)
            raise LabError(_remedy(to, group.exceptions[0], errors.read()[-LAST_CHARACTERS:])) from group


@asynccontextmanager
async def _client(to: Connection, errors: TextIO) -> AsyncGenerator[Client]:
    if to.url:
        headers = bearer(os.environ.get(TOKEN_VARIABLE, ""))
        async with (
            httpx2.AsyncClient(headers=headers, timeout=START_S, trust_env=False) as http,
            Client(streamable_http_client(to.url, http_client=http)) as client,
        ):
            yield client
    else:
        server = StdioServerParameters(command=to.command[0], args=list(to.command[1:]))
        async with Client(stdio_client(server, errlog=errors)) as client:
            yield client


def _remedy(to: Connection, problem: BaseException, last_words: str) -> str:
    why = f"{type(problem).__name__}: {problem}"
    if to.url:
        return (
            f"no lab answers at {to.url} ({why}): start one with `kernel-lab serve --http --port PORT`, and export "
            f"{TOKEN_VARIABLE} with its token here and where the client runs"
        )
    return f"the server did not start ({why} {last_words}): try `{shlex.join(to.command)}` by hand"
