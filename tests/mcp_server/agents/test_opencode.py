"""The real opencode against a scripted model and a real lab: what it spends, what it may touch, how it can end."""

import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Generator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mcp_server.agents.agent import Ending, RoleBrief, get_agent
from mcp_server.agents.opencode import AGENT
from tests.agent_programs import NODE, opencode
from tests.mcp_server.agents.direct import LabServer, Played, brief_of, play, served
from tests.mcp_server.agents.moments import at_request
from tests.mcp_server.conftest import write_task
from tests.scripted_model import Call, ScriptedModel, Step, Usage4
from toolkits.core.errors import InvalidInput
from toolkits.core.process import group_alive

SECRET = "dummy-key-of-the-tests"
LOOK = Step(calls=[Call("list_tasks")], usage=Usage4(1000, 200, 0, 50))
END = Step(text="All done.", usage=Usage4(700, 1300, 0, 20))
PATCH = "*** Begin Patch\n*** Add File: v1/kernel.cpp\n+int a;\n*** End Patch"
REFUSED = Step(refuse=True, usage=Usage4(0, 0, 0, 0))
RATE = {"error": {"type": "rate_limit_exceeded", "message": "Rate limit reached"}}


@pytest.fixture(autouse=True)
def _installed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", f"{opencode().parent}:{NODE}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "own"))


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Generator[LabServer]:
    root = tmp_path_factory.mktemp("lab")
    write_task(root / "kernels" / "scale")
    with served(root) as server:
        yield server


def brief(folder: Path, url: str, model: ScriptedModel, session: str = "") -> RoleBrief:
    keys = {"OPENAI_BASE_URL": f"{model.url}/v1", "OPENAI_API_KEY": SECRET}
    return brief_of(folder, url, "local/open-1", keys, session)


def tokens(played: Played) -> tuple[int, int, int, int]:
    usage = played.usage
    return usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens, usage.output_tokens


def test_a_role_works_in_its_worktree_alone_is_booked_to_the_token_and_goes_on_until_its_key_is_refused(
    lab: LabServer, tmp_path: Path
) -> None:
    (tmp_path / "outside").write_text("not for models", encoding="utf-8")
    work = [
        Call("write", {"filePath": "v1/kernel.cpp", "content": "int a;\n"}),
        Call("read", {"filePath": "v1/kernel.cpp"}),
        Call("read", {"filePath": str(tmp_path / "outside")}),
        Call("bash", {"command": "env"}),
    ]
    with ScriptedModel([LOOK, Step(calls=work, usage=Usage4(2000, 0, 0, 300)), END, LOOK, Step(http=401)]) as model:
        prompt = '- Make `scale` fast,\nnot "slow"'
        played = play(AGENT, brief(tmp_path, lab.url, model).model_copy(update={"prompt": prompt}))
        assert {"role": "user", "content": prompt} in model.requests[0].body["messages"]
        seen = json.dumps(model.requests[-1].body["messages"])
        tools = {tool["function"]["name"] for tool in model.requests[0].body["tools"]}
        again = play(AGENT, brief(tmp_path, lab.url, model, played.session))
        assert {"(set)"} == {request.headers["authorization"] for request in model.requests}
        assert not any(request.aside for request in model.requests)
    assert (played.ended.ending, played.ended.note, played.returncode) == ("done", "All done.", 0)
    assert (tokens(played), played.usage.model) == ((3700, 1500, 0, 370), "open-1")
    assert (tmp_path / "worktree/v1/kernel.cpp").read_text(encoding="utf-8") == "int a;\n"
    assert "int a;" in seen and "not for models" not in seen and "HOME=" not in seen
    assert "lab_benchmark" in tools and not tools & {"bash", "webfetch", "websearch", "task"}
    assert "calls list_tasks" in [event.text for event in played.events]
    assert (again.ended.ending, again.session) == ("auth", played.session)
    assert tokens(again) == (1000, 200, 0, 50)
    found = subprocess.run(["grep", "-rl", SECRET, str(tmp_path)], capture_output=True, text=True)
    assert found.returncode == 1, found.stdout


@pytest.mark.parametrize(
    ("step", "ending"),
    [
        (Step(http=429, body=RATE, headers={"retry-after": "3600"}), "quota"),
        (Step(http=500), "api_error"),
        (Step(text="cut", stream_cut=True), "api_error"),
        (REFUSED, "refused"),
    ],
)
def test_each_failure_of_the_vendor_is_told_from_the_others_and_what_came_before_is_booked(
    lab: LabServer, tmp_path: Path, step: Step, ending: Ending
) -> None:
    before = datetime.now(UTC)
    with ScriptedModel([LOOK, step]) as model:
        played = play(AGENT, brief(tmp_path, lab.url, model))
        assert len(model.requests) <= 4
    assert played.ended.ending == ending, played.ended
    assert tokens(played) == (1000, 200, 0, 50)
    if ending == "quota":
        assert datetime.fromisoformat(played.ended.quota_until) > before + timedelta(minutes=50)


def test_a_reply_is_booked_in_dollars_while_it_goes_on_and_a_signal_from_outside_is_a_crash(
    lab: LabServer, tmp_path: Path
) -> None:
    groups: list[int] = []

    def interfere(line: str, process: subprocess.Popen[str]) -> None:
        if '"lab_reply"' in line:
            groups.append(process.pid)
            os.killpg(process.pid, signal.SIGTERM)

    look = Step(calls=[Call("list_tasks")], usage=Usage4(1000, 200, 100, 50))
    with ScriptedModel([look, Step(hang=True)]) as model:
        keys = {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": SECRET}
        how = brief_of(tmp_path, lab.url, "anthropic/claude-sonnet-4-5", keys)
        played = play(AGENT, how, interfere)
    assert (tokens(played), played.usage.model) == ((1000, 200, 100, 50), "claude-sonnet-4-5")
    dollars = [event.usd_total for event in played.events if event.usd_total]
    assert dollars == [pytest.approx((1000 * 3 + 200 * 0.3 + 100 * 3.75 + 50 * 15) / 1e6)]
    assert (played.ended.ending, played.ended.note) == ("crashed", "ended by signal 15")
    assert not group_alive(groups[0])


def test_without_a_lab_it_does_not_work_on(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free = f"http://127.0.0.1:{taken.getsockname()[1]}/mcp"
    with ScriptedModel([LOOK, Step(hang=True)]) as model:
        played = play(AGENT, brief(tmp_path, free, model))
    assert played.ended.ending == "tools_missing", played.ended


def test_a_lab_that_goes_away_is_no_success_whatever_the_model_says(tmp_path: Path) -> None:
    (tmp_path / "lab").mkdir()
    with served(tmp_path / "lab") as server, ScriptedModel([LOOK, LOOK, END]) as model:
        at_request(model, 2, server.kill)
        played = play(AGENT, brief(tmp_path / "role", server.url, model))
    assert (played.ended.ending, played.returncode) == ("tools_missing", 0), played.ended


def test_it_says_what_it_needs_before_it_starts(tmp_path: Path) -> None:
    how = brief_of(tmp_path / "role", "http://127.0.0.1:1/mcp", "openai/gpt-5.1", {})
    with pytest.raises(InvalidInput, match="neither a key nor a login for openai"):
        AGENT.start(how)
    with pytest.raises(InvalidInput, match="a provider and a model"):
        AGENT.start(how.model_copy(update={"model": "gpt-5.1"}))
    (tmp_path / "own/opencode").mkdir(parents=True)
    (tmp_path / "own/opencode/auth.json").write_text("never read", encoding="utf-8")
    assert AGENT.start(how).environment["XDG_DATA_HOME"] == str(tmp_path / "own")
    by_key = AGENT.start(how.model_copy(update={"keys": {"OPENAI_API_KEY": SECRET}}))
    assert by_key.environment["XDG_DATA_HOME"].startswith(str(tmp_path / "role"))
    assert by_key.environment["OPENAI_API_KEY"] == SECRET


@pytest.mark.anyio
async def test_the_check_says_what_is_there_and_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = await get_agent("opencode").check({})
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", missing.version) and "opencode auth login" in missing.remedy
    ready = await get_agent("opencode").check({"ANTHROPIC_API_KEY": SECRET})
    assert (ready.login, ready.remedy) == ("by ANTHROPIC_API_KEY", "") and SECRET not in ready.model_dump_json()
    monkeypatch.setenv("PATH", "/nowhere")
    absent = await get_agent("opencode").check({})
    assert (absent.program, absent.remedy) == ("", "npm install -g opencode-ai")
