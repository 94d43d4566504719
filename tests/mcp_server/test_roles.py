"""Roles: real processes of a small installed agent, whose charter's prose is the shell script that it runs."""

import hashlib
import json
import sqlite3
from pathlib import Path

import pytest

from mcp_server.agents.agent import agents, get_agent
from mcp_server.budgets import Caps
from tests.mcp_server.shell_agent import DONE, RUN, install, roles_of, says
from toolkits.core.errors import InvalidInput, NotInWorkspace
from toolkits.core.process import started_at

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def shell_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "site", monkeypatch)


async def test_a_role_that_says_how_it_ended_is_believed_and_recorded(tmp_path: Path) -> None:
    async with roles_of(tmp_path / "lab") as (roles, ledger):
        started = await roles.spawn(RUN, "shell1", "echo not an event\n" + DONE, "shell")
        ended = await roles.wait(started.role)
        assert (ended.state, ended.note) == ("done", "all tried")
        assert ended.seconds > 0
        kinds = [(line.kind, line.role) for line in ledger.history(RUN)]
        assert kinds[1:] == [(kind, ended.role) for kind in ("role_started", "role_attempt", "role_ended")]
        folder = Path(ended.folder)
        assert (folder / "transcript.jsonl").read_text().startswith("not an event\n{")
        assert json.loads((folder / "result.json").read_text())["state"] == "done"
        assert {"charter.md", "notes.md", "worktree"} <= {path.name for path in folder.iterdir()}


async def test_a_role_that_crashes_again_and_again_ends_as_crashed_with_its_last_words(tmp_path: Path) -> None:
    async with roles_of(tmp_path / "lab") as (roles, _):
        started = await roles.spawn(RUN, "shell1", "echo out of ideas >&2; exit 0", "shell")
        ended = await roles.wait(started.role)
        assert (ended.state, ended.attempts) == ("crashed", 3)
        assert "exit status 0, no result: out of ideas" in ended.note


async def test_a_role_past_its_minutes_is_ended_with_everything_it_started(tmp_path: Path) -> None:
    script = "sh -c 'echo $$ > pid; sleep 1000; true'"
    async with roles_of(tmp_path / "lab") as (roles, _):
        started = await roles.spawn(RUN, "shell1", script, "shell", caps=Caps(minutes=0.01))
        ended = await roles.wait(started.role)
        assert ended.state == "time"
        assert started_at(int((Path(ended.folder) / "worktree" / "pid").read_text())) is None


async def test_a_role_that_spends_more_than_its_usd_is_ended(tmp_path: Path) -> None:
    script = "".join(says(kind="spend", usage={"input_tokens": 100}, usd_total=usd) for usd in (0.4, 0.8, 1.2))
    script += "sleep 1000; true"
    async with roles_of(tmp_path / "lab") as (roles, ledger):
        started = await roles.spawn(RUN, "shell1", script, "shell", caps=Caps(usd=1.0))
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
        started = await roles.spawn(RUN, "shell1", "env | grep = > env.txt\n" + DONE, "shell")
        await roles.wait(started.role)
        lines = (Path(started.folder) / "worktree" / "env.txt").read_text().splitlines()
        seen = {name: value for name, _, value in (line.partition("=") for line in lines)}
        assert "SOME_API_KEY" not in seen
        assert seen["ROLE"] == started.role
        assert seen["KERNEL_LAB_ROLE_DIR"] == started.folder
        assert seen["HOME"] == f"{started.folder}/home"
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
    assert {"other", "replay", "shell", "tuner"} <= set(agents())
    assert not {"agent", "client", "search", "tuning"} & set(agents())
    assert get_agent("shell").name == "shell"
    with pytest.raises(NotInWorkspace, match="no agent 'search'; there are: "):
        get_agent("search")
