"""The lab over streamable HTTP: a token names the caller, and nothing is left behind."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from mcp_server.budgets import Caps
from mcp_server.ledger import Ledger
from mcp_server.workspace import Workspace
from tests.mcp_server.conftest import command_line, descendants, write_solution

ADMIN = "the admin token"
HELLO = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


@pytest.fixture
def server(root: Path) -> Iterator[str]:
    """The address of a server in a process of its own."""
    command = [sys.executable, "-P", "-m", "mcp_server", "serve", "--http", "--root", str(root)]
    environment = os.environ | {"KERNEL_LAB_ADMIN_TOKEN": ADMIN}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        ready = json.loads(process.stdout.readline())
        assert ready["pid"] == process.pid
        yield ready["url"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) in (0, -signal.SIGTERM)


@asynccontextmanager
async def connected(url: str, token: str) -> AsyncGenerator[Client]:
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield client


async def structured(client: Client, tool: str, **arguments: object) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error and result.structured_content is not None, result.content
    return result.structured_content


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer guessed"}])
def test_without_a_known_token_there_is_no_answer(server: str, headers: dict[str, str]) -> None:
    refused = httpx2.post(server, json=HELLO, headers=headers, trust_env=False)
    assert refused.status_code == 401


@pytest.mark.anyio
async def test_what_a_role_measures_is_credited_to_it_and_to_the_run_of_its_administrator(
    server: str, root: Path
) -> None:
    workspace = Workspace(root)
    ledger = Ledger(workspace.database)
    path = write_solution(workspace.root / "mine", "does not compile")
    async with connected(server, ADMIN) as admin:
        await structured(admin, "open_run", run="night", task="scale", config="{}")
        folder = workspace.role_folder("night", 1, "tuner")
        role = ledger.add_role("night", 1, "tuner", "tuner", "role token", Caps(evaluations=1), folder)
        async with connected(server, "role token") as client:
            measured = await structured(client, "benchmark", task="scale", path=path)
            refused = await client.call_tool("benchmark", {"task": "scale", "path": path})
            assert refused.is_error
        events = (await structured(admin, "read_history", kinds=["evaluation"]))["events"]
    assert [(event["role"], event["body"]["evaluation"]) for event in events] == [(role.id, measured["evaluation"])]


@pytest.mark.anyio
async def test_stopping_a_role_ends_what_it_had_running(server: str, root: Path) -> None:
    task = root / "kernels" / "scale" / "task.yaml"
    task.write_text(task.read_text(encoding="utf-8").replace("call_timeout_s: 2.0", "call_timeout_s: 600"), "utf-8")
    endless = write_solution(root / "mine", "for (volatile int go = 1; go;) {}")
    call = {"type": "tool_call", "tool": "benchmark", "arguments": {"task": "scale", "path": endless}}
    (root / "calls.jsonl").write_text(json.dumps(call), encoding="utf-8")
    charter = f"---\ntranscript: {root / 'calls.jsonl'}\n---\n"
    async with connected(server, ADMIN) as admin:
        await structured(admin, "open_run", run="night", task="scale", config="{}")
        role = (await structured(admin, "spawn_role", name="stuck", charter=charter, agent="replay"))["role"]
        while not (jobs := running_jobs(root, role)):
            assert (await structured(admin, "wait_role", role=role, wait_s=0.2))["state"] == "running"
        await structured(admin, "stop_role", role=role)
        assert (await structured(admin, "get_result", id=jobs[0]))["state"] == "cancelled"
        path = write_solution(root / "other", "does not compile")
        assert (await structured(admin, "benchmark", task="scale", path=path))["status"] == "COMPILE_ERROR"


def running_jobs(root: Path, role: str) -> list[str]:
    with sqlite3.connect(root / "lab.db") as db:
        return [row[0] for row in db.execute("SELECT id FROM jobs WHERE role = ? AND state = 'running'", (role,))]


@pytest.mark.anyio
async def test_no_token_of_the_server_is_in_the_environment_of_what_it_starts(server: str) -> None:
    async with connected(server, ADMIN) as admin:
        await structured(admin, "benchmark", task="scale", path="naive", mode="check")
        children = [pid for pid in descendants(os.getpid()) if "toolkits.core" in command_line(pid)]
        assert children
        assert not [pid for pid in children if ADMIN in Path(f"/proc/{pid}/environ").read_text(errors="replace")]


@pytest.mark.anyio
async def test_the_token_of_a_role_that_ended_opens_nothing(server: str, root: Path) -> None:
    workspace = Workspace(root)
    ledger = Ledger(workspace.database)
    ledger.open_run("night", "scale", {})
    role = ledger.add_role("night", 1, "t", "tuner", "old token", Caps(), workspace.role_folder("night", 1, "t"))
    ledger.set_role(role.id, "done")
    headers = {"Authorization": "Bearer old token"}
    assert httpx2.post(server, json=HELLO, headers=headers, trust_env=False).status_code == 401


def test_a_server_started_by_hand_makes_a_token_and_says_how_to_use_it(root: Path) -> None:
    command = [sys.executable, "-P", "-m", "mcp_server", "--root", str(root), "serve", "--http"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KERNEL_LAB")}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout and process.stderr
        url = json.loads(process.stdout.readline())["url"]
        process.send_signal(signal.SIGTERM)
        told = process.stderr.read()
    token = told.partition("Bearer ")[2].partition('"')[0]
    assert len(token) > 20 and told.count(token) == 2
    assert f"claude mcp add -t http kernel-lab {url}" in told and f"codex mcp add kernel-lab --url {url}" in told


def test_a_taken_port_is_one_clear_error(server: str, root: Path) -> None:
    port = server.rpartition(":")[2].partition("/")[0]
    command = [sys.executable, "-P", "-m", "mcp_server", "serve", "--http", "--root", str(root), "--port", port]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "choose another --host or --port" in done.stderr and "Traceback" not in done.stderr
