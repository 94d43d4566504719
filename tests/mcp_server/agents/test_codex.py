"""The real Codex against a scripted model and a real lab: what it spends, what it may touch, every way it can end."""

import os
import re
import signal
import socket
import subprocess
import time
from collections.abc import Generator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from mcp_server.agents.agent import Ending, RoleBrief, get_agent
from mcp_server.agents.codex import AGENT, KEY
from mcp_server.agents.codex_attempt import CodexAttempt
from tests.agent_programs import codex
from tests.mcp_server.agents.direct import LabServer, Played, brief_of, play, served
from tests.mcp_server.agents.moments import at_request
from tests.mcp_server.conftest import write_task
from tests.scripted_model import Call, ScriptedModel, Step, Usage4
from toolkits.core.errors import InvalidInput
from toolkits.core.process import group_alive

SECRET = "dummy-key-of-the-tests"
LOOK = Step(calls=[Call("list_tasks")], usage=Usage4(1000, 200, 100, 50))
END = Step(text="All done.", usage=Usage4(700, 1300, 0, 20))
PATCH = "*** Begin Patch\n*** Add File: v1/kernel.cpp\n+int a;\n*** End Patch"
DAY_2100 = 4102444800
IN_TWO_HOURS = int(time.time()) // 60 * 60 + 7200
"""Codex tells a time of today without its day."""


@pytest.fixture(scope="module", autouse=True)
def _installed() -> None:
    codex()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Generator[LabServer]:
    root = tmp_path_factory.mktemp("lab")
    write_task(root / "kernels" / "scale")
    with served(root) as server:
        yield server


def brief(folder: Path, url: str, model: ScriptedModel, session: str = "") -> RoleBrief:
    keys = {"OPENAI_BASE_URL": f"{model.url}/v1", "OPENAI_API_KEY": SECRET}
    return brief_of(folder, url, "gpt-5.1", keys, session)


def tokens(played: Played) -> tuple[int, int, int, int]:
    usage = played.usage
    assert usage.model == "gpt-5.1"
    return usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens, usage.output_tokens


def answers(model: ScriptedModel) -> str:
    """What the model was told of its calls."""
    items: list[dict[str, Any]] = model.requests[-1].body["input"]
    return "\n".join(str(item["output"]) for item in items if item["type"] == "function_call_output")


def test_a_role_works_in_its_worktree_alone_is_booked_to_the_token_and_goes_on_where_it_was(
    lab: LabServer, tmp_path: Path
) -> None:
    shell = f"env; touch v1.txt; touch {tmp_path}/outside; ls $CODEX_HOME {tmp_path}/home/codex; cat <<< heredoc"
    work = [
        Call("exec_command", {"cmd": f"apply_patch <<'EOF'\n{PATCH}\nEOF"}),
        Call("exec_command", {"cmd": f"{shell}; bash -c 'echo > /dev/tcp/127.0.0.1/{urlsplit(lab.url).port}'"}),
    ]
    with ScriptedModel([LOOK, Step(calls=work, usage=Usage4(2000, 0, 0, 300)), END, LOOK, END]) as model:
        prompt = '- Make `scale` fast,\nnot "slow"'
        played = play(AGENT, brief(tmp_path, lab.url, model).model_copy(update={"prompt": prompt}))
        assert model.requests[0].body["input"][-1]["content"] == [{"type": "input_text", "text": prompt}]
        seen = answers(model)
        tools = {tool.get("name") for tool in model.requests[0].body["tools"]}
        again = play(AGENT, brief(tmp_path, lab.url, model, played.session))
        assert {"(set)"} == {request.headers["authorization"] for request in model.requests}
    assert (played.ended.ending, played.ended.note, played.returncode) == ("done", "All done.", 0)
    assert tokens(played) == (3700, 1500, 100, 370)
    assert (tmp_path / "worktree/v1/kernel.cpp").read_text(encoding="utf-8") == "int a;\n"
    assert (tmp_path / "worktree/v1.txt").exists() and not (tmp_path / "outside").exists()
    assert "heredoc" in seen and "Permission denied" in seen and "Operation not permitted" in seen
    assert not re.search(f"{SECRET}|KERNEL_LAB_TOKEN|API_KEY", seen)
    assert "mcp__lab" in tools and not tools & {"web_search", "multi_agent_v1", "image_generation", "create_goal"}
    assert [event.text for event in played.events if event.text.startswith("calls")] == ["calls list_tasks"]
    assert (again.ended.ending, again.session) == ("done", played.session)
    assert tokens(again) == (1700, 1500, 100, 70)
    found = subprocess.run(["grep", "-rl", SECRET, str(tmp_path)], capture_output=True, text=True)
    assert found.returncode == 1, found.stdout


def limit(resets_at: int) -> dict[str, Any]:
    return {"error": {"type": "usage_limit_reached", "message": "The limit has been reached", "resets_at": resets_at}}


USED_UP = {"x-codex-primary-used-percent": "100", "x-codex-primary-reset-at": str(DAY_2100 + 60)}
RATE = {"error": {"type": "rate_limit_exceeded", "code": "rate_limit_exceeded", "message": "Rate limit reached"}}


@pytest.mark.parametrize(
    ("step", "ending", "until"),
    [
        (Step(http=401), "auth", ""),
        (Step(http=429), "quota", ""),
        (Step(http=429, body=RATE), "quota", ""),
        (Step(http=429, body=limit(DAY_2100)), "quota", "2100-01-01T00:00:00+00:00"),
        (Step(http=429, body=limit(DAY_2100), headers=USED_UP), "quota", "2100-01-01T00:01:00+00:00"),
        (Step(http=429, body=limit(IN_TWO_HOURS)), "quota", datetime.fromtimestamp(IN_TWO_HOURS, UTC).isoformat()),
        (Step(http=500), "api_error", ""),
        (Step(http=529), "api_error", ""),
        (Step(http=400), "api_error", ""),
        (Step(text="cut", stream_cut=True), "api_error", ""),
        (Step(refuse=True, usage=Usage4(0, 0, 0, 0)), "refused", ""),
    ],
)
def test_each_failure_of_the_vendor_is_told_from_the_others_and_what_came_before_is_booked(
    lab: LabServer, tmp_path: Path, step: Step, ending: Ending, until: str
) -> None:
    with ScriptedModel([LOOK, step]) as model:
        played = play(AGENT, brief(tmp_path, lab.url, model))
    assert (played.ended.ending, played.ended.quota_until) == (ending, until), played.ended
    assert tokens(played) == (1000, 200, 100, 50)
    assert played.ended.note and f"exit status {played.returncode}" in played.ended.evidence


def test_words_that_decline_without_a_call_are_a_refusal(lab: LabServer, tmp_path: Path) -> None:
    with ScriptedModel([Step(text="I can't help with that.")]) as model:
        played = play(AGENT, brief(tmp_path, lab.url, model))
    assert (played.ended.ending, played.ended.note) == ("refused", "I can't help with that.")


def test_a_reply_is_booked_while_it_goes_on_and_a_signal_from_outside_is_a_crash(
    lab: LabServer, tmp_path: Path
) -> None:
    groups: list[int] = []

    def interfere(line: str, process: subprocess.Popen[str]) -> None:
        if '"item.completed"' in line and "mcp_tool_call" in line:
            groups.append(process.pid)
            os.killpg(process.pid, signal.SIGTERM)

    with ScriptedModel([LOOK, Step(hang=True)]) as model:
        played = play(AGENT, brief(tmp_path, lab.url, model), interfere)
    # Lines are the only occasion on which `play` asks, and the last came before the signal.
    assert tokens(played) == (1000, 200, 100, 50)
    assert (played.ended.ending, played.ended.note) == ("crashed", "ended by signal 15")
    assert not group_alive(groups[0])


@pytest.mark.parametrize("trouble", ["no server", "wrong token"])
def test_without_a_lab_it_does_not_start_to_work(lab: LabServer, tmp_path: Path, trouble: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free = f"http://127.0.0.1:{taken.getsockname()[1]}/mcp"
    with ScriptedModel([END]) as model:
        how = brief(tmp_path, free if trouble == "no server" else lab.url, model)
        played = play(AGENT, how.model_copy(update={"token": "wrong"} if trouble == "wrong token" else {}))
        assert not model.requests
    assert played.ended.ending == "tools_missing"
    assert played.usage.tokens == 0


def test_a_lab_that_goes_away_is_no_success_whatever_the_model_says(tmp_path: Path) -> None:
    (tmp_path / "lab").mkdir()
    with served(tmp_path / "lab") as server, ScriptedModel([LOOK, LOOK, END]) as model:
        at_request(model, 2, server.kill)
        played = play(AGENT, brief(tmp_path / "role", server.url, model))
    assert (played.ended.ending, played.returncode) == ("tools_missing", 0), played.ended


class Unapproved:
    """Codex as it would be without the approval of the lab's tools."""

    name, check = AGENT.name, AGENT.check
    keys: tuple[str, ...] = AGENT.keys

    def start(self, brief: RoleBrief) -> CodexAttempt:
        attempt = AGENT.start(brief)
        attempt.command = [part.replace('"approve"', '"prompt"') for part in attempt.command]
        return attempt


def test_calls_that_were_not_approved_are_missing_tools_whatever_the_exit_status(
    lab: LabServer, tmp_path: Path
) -> None:
    with ScriptedModel([LOOK, END]) as model:
        played = play(Unapproved(), brief(tmp_path, lab.url, model))
    assert (played.ended.ending, played.returncode) == ("tools_missing", 0), played.ended


def test_it_uses_a_login_of_the_person_only_where_no_key_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "own"))
    how = brief_of(tmp_path / "role", "http://127.0.0.1:1/mcp", "", {})
    with pytest.raises(InvalidInput, match="codex login"):
        AGENT.start(how)
    (tmp_path / "own").mkdir()
    (tmp_path / "own/auth.json").write_text("never read", encoding="utf-8")
    by_login = AGENT.start(how)
    assert by_login.environment["CODEX_HOME"] == str(tmp_path / "own")
    assert any("requires_openai_auth" in part for part in by_login.command)
    assert any(f'"{tmp_path}/own"="deny"' in part for part in by_login.command)
    by_key = AGENT.start(how.model_copy(update={"keys": {KEY: SECRET}}))
    assert by_key.environment["CODEX_HOME"] == str(tmp_path / "role/home/codex")
    assert SECRET in by_key.environment.values() and SECRET not in "".join(by_key.command)


@pytest.mark.anyio
async def test_the_check_says_what_is_there_and_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    missing = await get_agent("codex").check({})
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", missing.version) and "codex login" in missing.remedy
    assert not list(tmp_path.iterdir())
    ready = await get_agent("codex").check({KEY: SECRET})
    assert (ready.login, ready.remedy) == (f"by {KEY}", "") and SECRET not in ready.model_dump_json()
