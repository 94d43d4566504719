"""The tuner as a role of a real server over HTTP: it searches, resumes and stops, and everything is in the ledger."""

import json
import os
import shutil
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from anyio.streams.text import TextReceiveStream
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from pydantic import TypeAdapter

from mcp_server.schema import HistoryAnswer, HistoryLine, RoleAnswer
from toolkits.core.process import started_process
from toolkits.core.schema import Json

pytestmark = pytest.mark.anyio
TASK, VARIANT = "rmsnorm", "simd"
SMALL = {"ACCUMULATORS": [1, 2, 4], "VECTOR_BYTES": [16], "ROWS_AHEAD": [0], "STREAM": [0]}
SMALL_SIZE = 3
TOKEN = "admin-of-the-test"
LINES = TypeAdapter(Json)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace whose own version of the task has one small workload, so that an evaluation is short."""
    mine = tmp_path / "lab" / "kernels" / TASK
    shutil.copytree(Path(__file__).parents[3] / "kernels" / TASK, mine)
    workload = {"uuid": "small", "axes": {"rows": 64, "cols": 512}}
    (mine / "workloads.jsonl").write_text(json.dumps(workload) + "\n", encoding="utf-8")
    return tmp_path / "lab"


@asynccontextmanager
async def server(root: Path) -> AsyncGenerator[Client]:
    """A server process on `root` and its administrator's client; the server is killed without notice at the end."""
    command = [sys.executable, "-P", "-m", "mcp_server", "serve", "--http", "--port", "0", "--root", str(root)]
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "KERNEL_LAB_ADMIN_TOKEN": TOKEN}
    async with started_process(command, cwd=root, env=environment) as process:
        assert process.stdout
        url = json.loads(await TextReceiveStream(process.stdout).receive())["url"]
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            await call(client, "open_run", run="run1", task=TASK, config="{}")
            yield client


async def call(client: Client, tool: str, **arguments: object) -> Json:
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content
    return answer.structured_content or {}


async def spawn(client: Client, evaluations: int = 0, cap: int = 0, space: dict[str, list[int]] = SMALL) -> RoleAnswer:
    front = f"task: {TASK}\nvariants: [{VARIANT}]\nspace: {json.dumps({VARIANT: space})}\nevaluations: {evaluations}\n"
    charter = f"---\n{front}---\nFind the fastest configuration.\n"
    return RoleAnswer.model_validate(await call(client, "spawn_role", name="tuner1", charter=charter, evaluations=cap))


async def ended(client: Client, role: RoleAnswer) -> RoleAnswer:
    while role.state == "running":
        role = RoleAnswer.model_validate(await call(client, "wait_role", role=role.role))
    return role


async def evaluations(client: Client) -> list[HistoryLine]:
    page = await call(client, "read_history", run="run1", kinds=["evaluation"], limit=100)
    return HistoryAnswer.model_validate(page).events


def transcript(role: RoleAnswer) -> list[Json]:
    text = (Path(role.folder) / "transcript.jsonl").read_text(encoding="utf-8")
    return [LINES.validate_json(line) for line in text.splitlines()]


async def test_a_small_space_is_searched_to_its_end_and_credited_to_the_role(root: Path) -> None:
    async with server(root) as client:
        role = await ended(client, await spawn(client))
        measured = await evaluations(client)
        assert role.state == "done", role.note
        assert role.evaluations == len(measured) >= SMALL_SIZE
        assert len({line.body["solution"] for line in measured}) == SMALL_SIZE
        assert {line.role for line in measured} == {role.role}
        assert measured[0].body["parameters"] == {"ACCUMULATORS": 1, "VECTOR_BYTES": 16, "ROWS_AHEAD": 0, "STREAM": 0}
        assert role.best and role.best_evaluation in {line.body["evaluation"] for line in measured}
        assert {"tool_call", "tool_result", "progress"} <= {str(line["type"]) for line in transcript(role)}
        assert transcript(role)[-1]["type"] == "result"


async def test_after_a_kill_the_same_role_measures_only_what_is_missing(root: Path) -> None:
    async with server(root) as client:
        role = await spawn(client)
        while not await evaluations(client):
            await call(client, "wait_role", role=role.role, wait_s=0.2)
    async with server(root) as client:
        before = await evaluations(client)
        again = await ended(client, await spawn(client))
        assert again.role != role.role
        assert again.state == "done", again.note
        told = [line.body["solution"] for line in await evaluations(client) if line.body["cause"] != "clock_mismatch"]
        assert len(told) == len(set(told)) == SMALL_SIZE
        assert 0 < len(before) <= len(told)


async def test_the_server_grants_no_more_evaluations_than_the_role_was_given(root: Path) -> None:
    async with server(root) as client:
        role = await ended(client, await spawn(client, cap=1))
        assert role.state == "budget"
        assert "grants no further evaluation" in role.note
        assert len(await evaluations(client)) == 1


async def test_the_charter_may_cap_it_too_and_a_stopped_tuner_says_so(root: Path) -> None:
    async with server(root) as client:
        role = await ended(client, await spawn(client, evaluations=1))
        assert role.state == "budget"
        assert len(await evaluations(client)) == 1
        role = await spawn(client)
        while transcript(role)[-1]["type"] == "result":
            await call(client, "wait_role", role=role.role, wait_s=0.2)
        role = RoleAnswer.model_validate(await call(client, "stop_role", role=role.role))
        assert role.state == "stopped"
        assert transcript(role)[-1] == {"type": "result", "ending": "stopped", "note": "interrupted"}


async def test_a_charter_that_asks_for_what_is_not_there_crashes_with_one_clear_line(root: Path) -> None:
    async with server(root) as client:
        role = await ended(client, await spawn(client, space={"VECTOR_BYTES": [5]}))
        assert role.state == "crashed"
        assert "space.simd.VECTOR_BYTES is [5]; declared values are [16, 32, 64]" in role.note
