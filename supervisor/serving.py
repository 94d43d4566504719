"""A server of the lab as a child of the supervisor: started, watched, and gone when the block ends."""

import logging
import os
import secrets
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import cast

import anyio
import anyio.abc
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from pydantic import ValidationError

from supervisor.client import BROKEN, CALL_PATIENCE_S, Lab, how_to_resume
from toolkits.core.errors import HarnessError, LabError
from toolkits.core.process import started_process
from toolkits.core.schema import Record

START_PATIENCE_S = 60.0


class _Ready(Record):
    url: str
    pid: int


@asynccontextmanager
async def started_lab(root: Path) -> AsyncGenerator[Lab]:
    """A server of our own on `root`, and a client with its admin token; both are gone after the block."""
    log = _log(root)
    token = secrets.token_urlsafe(32)
    command = [sys.executable, "-P", "-m", "mcp_server", "serve", "--http", "--port", "0", "--root", str(root)]
    environment = os.environ | {"KERNEL_LAB_ADMIN_TOKEN": token}
    with _lab_error_alone(log):
        async with _serving(command, environment, log, token) as lab:
            yield lab


def _log(root: Path) -> Path:
    """The server's log, in a workspace that can be written to."""
    log = root / "server.log"
    try:
        root.mkdir(parents=True, exist_ok=True)
        log.touch()
    except OSError as error:
        raise LabError(f"--root {root} cannot be written: {(error.strerror or str(error)).lower()}") from error
    return log


@contextmanager
def _lab_error_alone(log: Path) -> Generator[None]:
    """Task groups wrap what passes through them; callers want to catch the LabError itself."""
    try:
        yield
    except BaseExceptionGroup as group:
        if errors := group.subgroup(LabError):
            raise _leaf(errors) from None
        # A server that dies amid an exchange breaks the transport's own tasks, which no call can see.
        if broken := group.subgroup(BROKEN):
            raise HarnessError(f"the lab's server is gone ({_leaf(broken)}); {how_to_resume(log)}") from None
        raise


def _leaf(error: BaseException) -> BaseException:
    if not isinstance(error, BaseExceptionGroup):
        return error
    return _leaf(cast("BaseExceptionGroup[BaseException]", error).exceptions[0])


@asynccontextmanager
async def _serving(command: list[str], environment: dict[str, str], log: Path, token: str) -> AsyncGenerator[Lab]:
    async with AsyncExitStack() as stack:
        stderr = stack.enter_context(log.open("ab"))
        server = await stack.enter_async_context(
            started_process(command, cwd=Path.cwd(), env=environment, stderr=stderr.fileno())
        )
        ready = await _ready(server, log)
        client = await stack.enter_async_context(_connected(ready.url, token))
        lab = Lab(client, log)
        tasks = await stack.enter_async_context(anyio.create_task_group())
        tasks.start_soon(_watch, server, lab)
        yield lab
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def _connected(url: str, token: str) -> AsyncGenerator[Client]:
    # The SDK logs a traceback when a server vanishes; that the server ended is said once, by Lab.
    for name in ("mcp", "httpx2", "client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    timeout = httpx2.Timeout(30.0, read=CALL_PATIENCE_S)
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=timeout) as http,
        # The server is our child and ends with us: there is no session to terminate.
        Client(streamable_http_client(url, http_client=http, terminate_on_close=False)) as client,
    ):
        yield client


async def _ready(server: anyio.abc.Process, log: Path) -> _Ready:
    """The first line of the server's stdout."""
    line = b""
    assert server.stdout
    with suppress(anyio.EndOfStream), anyio.move_on_after(START_PATIENCE_S):
        while b"\n" not in line:
            line += await server.stdout.receive()
    try:
        return _Ready.model_validate_json(line.split(b"\n")[0])
    except ValidationError as error:
        raise HarnessError(f"the lab's server did not start: {_last_line(log)} (see {log})") from error


async def _watch(server: anyio.abc.Process, lab: Lab) -> None:
    """Keep the server's stdout empty, and notice its end."""
    assert server.stdout
    async for _ in server.stdout:
        pass
    lab.server_ended(await server.wait())


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else "it said nothing"
