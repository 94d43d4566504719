"""Roles: real processes of a small installed agent, whose charter's prose is the shell script that it runs."""

import hashlib
import importlib
import json
import shlex
import sqlite3
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mcp_server.agents.agent import agents, get_agent
from mcp_server.ledger import Ledger
from mcp_server.roles import Connection, Roles
from mcp_server.workspace import Workspace
from toolkits.core.errors import InvalidInput, NotInWorkspace
from toolkits.core.process import started_at

pytestmark = pytest.mark.anyio
RUN = "run1"
SHELL_AGENT = """
from mcp_server.agents.agent import AgentEvent
from mcp_server.charter import parse

class Shell:
    name = "shell"

    def command(self, brief):
        return ["/bin/sh", "-c", parse(brief.charter.read_text()).prose]

    def environment(self, brief):
        return {"ROLE": brief.role}

    def event(self, line):
        return AgentEvent.model_validate_json(line) if line.startswith("{") else None

AGENT = Shell()
"""


@pytest.fixture(autouse=True)
def shell_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent installed the way any distribution would install one."""
    site = tmp_path / "site"
    metadata = site / "shell_agent-1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: shell-agent\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[kernel_lab.agents]\nshell = shell_agent:AGENT\n")
    (site / "shell_agent.py").write_text(SHELL_AGENT)
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    importlib.invalidate_caches()


@asynccontextmanager
async def roles_of(root: Path) -> AsyncGenerator[tuple[Roles, Ledger]]:
    workspace = Workspace(root)
    ledger = Ledger(workspace.database)
    ledger.open_run(RUN, "rmsnorm", {})

    async def connection() -> Connection:
        return Connection(url=None, root=root)

    roles = Roles(workspace, ledger, connection)
    try:
        yield roles, ledger
    finally:
        await roles.close()
        ledger.close()


def says(**event: object) -> str:
    return f"echo {shlex.quote(json.dumps(event))}\n"


DONE = says(kind="result", outcome="done", text="all tried")


async def test_a_role_that_says_how_it_ended_is_believed_and_recorded(tmp_path: Path) -> None:
    async with roles_of(tmp_path / "lab") as (roles, ledger):
        started = await roles.spawn(RUN, "shell1", "echo not an event\n" + DONE, "shell")
        ended = await roles.wait(started.role)
        assert (ended.state, ended.note) == ("done", "all tried")
        assert ended.seconds > 0
        kinds = [(line.kind, line.role) for line in ledger.history(RUN)]
        assert kinds[1:] == [("role_started", ended.role), ("role_ended", ended.role)]
        folder = Path(ended.folder)
        assert (folder / "transcript.jsonl").read_text().startswith("not an event\n{")
        assert json.loads((folder / "result.json").read_text())["state"] == "done"
        assert {"charter.md", "notes.md", "worktree"} <= {path.name for path in folder.iterdir()}


async def test_exit_status_0_without_a_result_line_is_a_crash_with_its_last_words(tmp_path: Path) -> None:
    async with roles_of(tmp_path / "lab") as (roles, _):
        started = await roles.spawn(RUN, "shell1", "echo out of ideas >&2; exit 0", "shell")
        ended = await roles.wait(started.role)
        assert ended.state == "crashed"
        assert "no result line: out of ideas" in ended.note


async def test_a_result_line_does_not_hide_a_failing_exit_status(tmp_path: Path) -> None:
    async with roles_of(tmp_path / "lab") as (roles, _):
        started = await roles.spawn(RUN, "shell1", DONE + "exit 3", "shell")
        ended = await roles.wait(started.role)
        assert (ended.state, ended.note) == ("crashed", "all tried (exit status 3)")


async def test_a_role_past_its_minutes_is_ended_with_everything_it_started(tmp_path: Path) -> None:
    script = "sh -c 'echo $$ > pid; sleep 1000; true'"
    async with roles_of(tmp_path / "lab") as (roles, _):
        started = await roles.spawn(RUN, "shell1", script, "shell", minutes=0.01)
        ended = await roles.wait(started.role)
        assert ended.state == "time"
        assert started_at(int((Path(ended.folder) / "worktree" / "pid").read_text())) is None


async def test_a_role_that_spends_more_than_its_usd_is_ended(tmp_path: Path) -> None:
    script = says(kind="spend", usd=0.4, tokens=100) * 3 + "sleep 1000; true"
    async with roles_of(tmp_path / "lab") as (roles, ledger):
        started = await roles.spawn(RUN, "shell1", script, "shell", usd=1.0)
        ended = await roles.wait(started.role)
        assert ended.state == "budget"
        assert (round(ended.usd, 6), ended.tokens) == (1.2, 300)
        assert ledger.spent(RUN).tokens == 300


async def test_a_running_role_is_joined_and_an_ended_one_goes_on_in_its_folder(tmp_path: Path) -> None:
    async with roles_of(tmp_path / "lab") as (roles, ledger):
        first = await roles.spawn(RUN, "shell1", "echo first; sleep 1000; true", "shell")
        assert (await roles.spawn(RUN, "shell1", "echo never", "shell")).role == first.role
        assert (await roles.wait(first.role, wait_s=0)).state == "running"
        assert (await roles.stop(first.role)).state == "stopped"
        second = await roles.spawn(RUN, "shell1", "echo second\n" + DONE, "shell")
        assert second.role != first.role
        assert (await roles.wait(second.role)).state == "done"
        assert (Path(second.folder) / "transcript.jsonl").read_text().split("\n")[-3] == "second"
        starts = ledger.history(RUN, kinds=["role_started"])
        assert [line.body["attempt"] for line in starts] == [1, 2]


async def test_a_role_sees_nothing_of_the_server_but_its_own_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    async with roles_of(tmp_path / "lab") as (roles, ledger):
        started = await roles.spawn(RUN, "shell1", "env > env.txt\n" + DONE, "shell")
        await roles.wait(started.role)
        lines = (Path(started.folder) / "worktree" / "env.txt").read_text().splitlines()
        seen = dict(line.split("=", 1) for line in lines)
        assert "SOME_API_KEY" not in seen
        assert seen["ROLE"] == started.role
        assert seen["HOME"] == seen["KERNEL_LAB_ROLE_DIR"] == started.folder
        assert seen["KERNEL_LAB_ROOT"] == str(tmp_path / "lab")
        with sqlite3.connect(ledger.path) as db:
            stored = [value for row in db.execute("SELECT * FROM roles") for value in row]
        assert seen["KERNEL_LAB_TOKEN"] not in stored
        assert hashlib.sha256(seen["KERNEL_LAB_TOKEN"].encode()).hexdigest() in stored


async def test_output_that_is_no_text_is_kept_whole(tmp_path: Path) -> None:
    async with roles_of(tmp_path / "lab") as (roles, _):
        script = "printf '\\377\\376'; head -c 300000 /dev/zero; echo\n" + DONE
        started = await roles.spawn(RUN, "shell1", script, "shell")
        assert (await roles.wait(started.role)).state == "done"
        transcript = (Path(started.folder) / "transcript.jsonl").read_bytes()
        assert transcript.startswith(b"\xff\xfe" + b"\0" * 300_000 + b"\n{")


async def test_closing_ends_every_role(tmp_path: Path) -> None:
    async with roles_of(tmp_path / "lab") as (roles, ledger):
        await roles.spawn(RUN, "shell1", "sleep 1000; true", "shell")
        await roles.spawn(RUN, "shell2", "sleep 1000; true", "shell")
        await roles.close()
        assert [row.state for row in ledger.roles(RUN)] == ["stopped", "stopped"]


async def test_a_charter_for_another_task_starts_nothing(tmp_path: Path) -> None:
    async with roles_of(tmp_path / "lab") as (roles, ledger):
        with pytest.raises(InvalidInput, match="the charter is for task 'matmul'"):
            await roles.spawn(RUN, "shell1", "---\ntask: matmul\n---\n", "shell")
        assert ledger.roles(RUN) == []


def test_agents_are_found_by_file_name_and_by_entry_point() -> None:
    assert {"replay", "shell", "tuner"} <= set(agents())
    assert not {"agent", "client", "search", "tuning"} & set(agents())
    assert get_agent("shell").name == "shell"
    with pytest.raises(NotInWorkspace, match="no agent 'search'; there are: "):
        get_agent("search")
