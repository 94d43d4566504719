"""Runs the server: over stdio for one client, over streamable HTTP on loopback for a run and its roles."""

import asyncio
import json
import os
import secrets
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TextIO, cast

import anyio
from mcp.server import MCPServer
from mcp.server.auth.provider import AccessToken, TokenVerifier

from mcp_server import keys
from mcp_server.callers import Callers
from mcp_server.lab import Lab
from mcp_server.ledger import Ledger
from mcp_server.server import build_server
from mcp_server.workspace import Workspace
from toolkits.core.errors import LabError

SHUTDOWN_PATIENCE_S = 2
PATH = "/mcp"
LOOPBACK = "127.0.0.1"


class LabTokens(TokenVerifier):
    """Accepts the administrator's token and those of running roles."""

    def __init__(self, callers: Callers) -> None:
        self._callers = callers

    async def verify_token(self, token: str) -> AccessToken | None:
        known = self._callers.caller(token)
        if known is None:
            return None
        return AccessToken(token=token, client_id=known.role_id or "admin", scopes=[], expires_at=None)


def open_lab(root: Path, url: str = "", admin_token: str = "") -> Lab:
    """The lab on a workspace root, for whom the environment's token names."""
    workspace = Workspace(root)
    callers = Callers(Ledger(workspace.database), admin_token, _secret("KERNEL_LAB_TOKEN"))
    lab = Lab(workspace, callers, url, keys=keys.taken(os.environ))
    lab.listen = partial(_address_for_roles, lab)
    return lab


@asynccontextmanager
async def _address_for_roles(lab: Lab) -> AsyncGenerator[str]:
    """The same lab over HTTP on loopback, for a server that talks to its own client another way."""
    import uvicorn  # only here: a server without roles does not pay for it

    class Server(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Generator[None]:
            yield  # they are the process's own business

    with _listening(LOOPBACK, 0) as listener:
        app = server_of(lab, LabTokens(lab.callers)).streamable_http_app(streamable_http_path=PATH, host=LOOPBACK)
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=SHUTDOWN_PATIENCE_S)
        server = Server(config)
        serving = asyncio.create_task(server.serve(sockets=[listener]), name="the listener for roles")
        try:
            yield f"http://{LOOPBACK}:{listener.getsockname()[1]}{PATH}"
        finally:
            server.should_exit = True
            await asyncio.wait({serving})


def _secret(name: str) -> str:
    """Taken out of the environment, which compilers, candidates and profiled programs inherit."""
    return os.environ.pop(name, "")


def server_of(lab: Lab, verifier: TokenVerifier | None = None) -> MCPServer:
    """The server as a process of its own: nothing that only a terminal needs is imported."""
    with _plain_logs():
        return build_server(lab, verifier)


def serve_stdio(root: Path) -> None:
    """Until the client closes its end."""
    anyio.run(_stdio, root)


async def _stdio(root: Path) -> None:
    lab = open_lab(root, admin_token=_secret("KERNEL_LAB_ADMIN_TOKEN"))
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_end_on_signal, lab)
            await _until_the_client_is_gone(server_of(lab))
            await lab.finish_jobs()
            tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await lab.close()


async def _until_the_client_is_gone(server: MCPServer) -> None:
    """However it goes: one that is killed leaves a pipe that takes no more progress."""
    try:
        await server.run_stdio_async()
    except* BrokenPipeError:
        pass


async def _end_on_signal(lab: Lab) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for received in signals:
            await lab.close()
            # Not sys.exit: it would wait for the thread that reads stdin, which nothing can wake.
            os._exit(128 + received)


def serve_http(root: Path, host: str, port: int) -> None:
    """Until SIGINT or SIGTERM. The first line on stdout names the address and the process."""
    token = _secret("KERNEL_LAB_ADMIN_TOKEN")
    with _listening(host, port) as listener:
        url = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}{PATH}"
        if not token:
            token = secrets.token_urlsafe(24)
            _tell_how_to_connect(url, token)
        anyio.run(_http, root, host, listener, url, token)


async def _http(root: Path, host: str, listener: socket.socket, url: str, token: str) -> None:
    import uvicorn  # only here: stdio does not pay for it

    lab = open_lab(root, url, token)
    app = server_of(lab, LabTokens(lab.callers)).streamable_http_app(streamable_http_path=PATH, host=host)
    config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=SHUTDOWN_PATIENCE_S)
    try:
        _write(sys.stdout, json.dumps({"url": url, "pid": os.getpid()}))
        await uvicorn.Server(config).serve(sockets=[listener])
    finally:
        with anyio.CancelScope(shield=True):
            await lab.close()


@contextmanager
def _plain_logs() -> Generator[None]:
    """Keeps the SDK from importing rich for its log handler: a tenth of the start, for nothing on a pipe."""
    if "rich.console" in sys.modules:
        yield
        return
    sys.modules["rich.console"] = cast(ModuleType, None)
    try:
        yield
    finally:
        del sys.modules["rich.console"]


def _listening(host: str, port: int) -> socket.socket:
    """Bound before the server exists, so that port 0 is known and an early client waits instead of failing."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise LabError(f"cannot listen on {host}:{port} ({error.strerror}): choose another --host or --port") from error
    listener.listen(128)
    return listener


def _tell_how_to_connect(url: str, token: str) -> None:
    _write(
        sys.stderr,
        "KERNEL_LAB_ADMIN_TOKEN is not set, so this server made a token that ends with it. For example:\n"
        f'  claude mcp add -t http kernel-lab {url} -H "Authorization: Bearer {token}"\n'
        f"  codex mcp add kernel-lab --url {url} --bearer-token-env-var KERNEL_LAB_ADMIN_TOKEN\n"
        f"  export KERNEL_LAB_ADMIN_TOKEN={token}   # where codex runs",
    )


def _write(stream: TextIO, line: str) -> None:
    stream.write(line + "\n")
    stream.flush()
