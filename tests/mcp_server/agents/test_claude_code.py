"""The real Claude Code against a scripted model and a real lab: what it spends, what it may touch, how it can end."""

import json
import os
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from mcp_server.agents.agent import Ending, Exit, RoleBrief, get_agent
from mcp_server.agents.claude_attempt import ClaudeAttempt
from mcp_server.agents.claude_code import ADDRESS, AGENT, CREDENTIALS, HOME
from tests.agent_programs import claude
from tests.mcp_server.agents.direct import LabServer, Played, brief_of, play, served
from tests.mcp_server.agents.moments import at_request
from tests.mcp_server.conftest import write_task
from tests.scripted_model import Call, ScriptedModel, Step, Usage4
from toolkits.core.process import group_alive

KEY = CREDENTIALS[0]
SECRET = "dummy-key-of-the-tests"
LOOK = Step(calls=[Call("list_tasks")], usage=Usage4(1000, 200, 100, 50))
LOOK_USD = 0.003 + 0.00006 + 0.000375 + 0.00075
END = Step(text="All done.", usage=Usage4(700, 1300, 0, 20))
END_USD = 0.0021 + 0.00039 + 0.0003
NO_CREDIT = {"type": "error", "error": {"type": "invalid_request_error", "message": "Your credit balance is too low"}}


@pytest.fixture(scope="module", autouse=True)
def _installed() -> None:
    claude()


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Generator[LabServer]:
    root = tmp_path_factory.mktemp("lab")
    write_task(root / "kernels" / "scale")
    with served(root) as server:
        yield server


def brief(folder: Path, url: str, model: ScriptedModel, session: str = "") -> RoleBrief:
    return brief_of(folder, url, "claude-sonnet-4-5", {ADDRESS: model.url, KEY: SECRET}, session)


def tokens(played: Played) -> tuple[int, int, int, int]:
    usage = played.usage
    assert usage.model == "claude-sonnet-4-5"
    return usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens, usage.output_tokens


def results(model: ScriptedModel) -> str:
    """What the model was told of its calls."""
    return json.dumps(model.requests[-1].body["messages"])


def test_a_role_works_in_its_worktree_alone_is_booked_to_token_and_cent_and_goes_on_where_it_was(
    lab: LabServer, tmp_path: Path
) -> None:
    def write(path: str) -> Call:
        return Call("Write", {"file_path": str(tmp_path / path), "content": "x"})

    files = [
        write("worktree/v1/kernel.cpp"),
        write("notes.md"),
        write("outside"),
        write("home/claude/settings.json"),
        Call("Read", {"file_path": str(tmp_path / "home/mcp.json")}),
        Call("Grep", {"pattern": "KERNEL_LAB_TOKEN", "path": str(tmp_path)}),
        Call("Bash", {"command": "env"}),
    ]
    wrong = Step(calls=[Call("describe_task", {"task": "nothing"})], usage=Usage4(0, 0, 0, 0))
    script = [LOOK, Step(calls=files, usage=Usage4(2000, 0, 0, 300)), wrong, END, LOOK, END]
    with ScriptedModel(script) as model:
        prompt = '- Make `scale` fast,\nnot "slow"'
        played = play(AGENT, brief(tmp_path, lab.url, model).model_copy(update={"prompt": prompt}))
        assert json.dumps(prompt)[1:-1] in json.dumps(model.requests[0].body["messages"])
        offered = {str(tool["name"]) for tool in model.requests[0].body["tools"]}
        seen = results(model)
        # Its own limit is of this process alone, or what went before would end the resumed one at once.
        how = brief(tmp_path, lab.url, model, played.session)
        again = play(AGENT, how.model_copy(update={"usd_left": LOOK_USD + 2 * END_USD}))
    assert (played.ended.ending, played.ended.note, played.returncode) == ("done", "All done.", 0)
    assert tokens(played) == (3700, 1500, 100, 370)
    assert played.usd == pytest.approx(LOOK_USD + 0.006 + 0.0045 + END_USD, abs=1e-9)
    assert {name for name in offered if "mcp__" not in name} == {"Read", "Edit", "Write", "Glob", "Grep"}
    assert "mcp__lab__benchmark" in offered
    assert (tmp_path / "worktree/v1/kernel.cpp").exists() and (tmp_path / "notes.md").exists()
    assert not (tmp_path / "outside").exists() and not (tmp_path / "home/claude/settings.json").exists()
    assert "denied by your permission settings" in seen and "No files found" in seen and "No such tool" in seen
    assert "calls list_tasks" in [event.text.strip() for event in played.events]
    assert (again.ended.ending, again.session) == ("done", played.session)
    assert tokens(again) == (1700, 1500, 100, 70)
    assert again.usd == pytest.approx(LOOK_USD + END_USD, abs=1e-9)
    found = subprocess.run(["grep", "-rlE", f"{SECRET}|{lab.token}", str(tmp_path)], capture_output=True, text=True)
    assert found.returncode == 1, found.stdout


@pytest.mark.parametrize(
    ("step", "ending", "replies"),
    [
        (Step(http=401), "auth", 1),
        (Step(http=403), "auth", 1),
        (Step(http=429), "quota", 1),
        (Step(http=429, headers={"retry-after": "3600"}), "quota", 1),
        (Step(http=400, body=NO_CREDIT), "quota", 1),
        (Step(http=500), "api_error", 1),
        (Step(http=529), "api_error", 1),
        (Step(http=404), "api_error", 1),
        (Step(refuse=True, usage=Usage4(1000, 200, 100, 50)), "refused", 2),
    ],
)
def test_each_failure_of_the_vendor_is_told_from_the_others_and_what_came_before_is_booked(
    lab: LabServer, tmp_path: Path, step: Step, ending: Ending, replies: int
) -> None:
    with ScriptedModel([LOOK, step]) as model:
        played = play(AGENT, brief(tmp_path, lab.url, model))
        assert len(model.turns) <= 3
    assert played.ended.ending == ending, played.ended
    assert tokens(played) == (1000 * replies, 200 * replies, 100 * replies, 50 * replies)
    assert played.usd == pytest.approx(LOOK_USD * replies, abs=1e-9)
    assert played.ended.note and "exit status 1" in played.ended.evidence


def test_a_reply_that_breaks_off_is_asked_for_again_and_paid_for_as_the_client_counts_it(
    lab: LabServer, tmp_path: Path
) -> None:
    with ScriptedModel([LOOK, Step(text="cut", stream_cut=True, usage=Usage4(1000, 0, 0, 50))]) as model:
        played = play(AGENT, brief(tmp_path, lab.url, model))
        asked = len(model.turns) - 1
    assert asked > 1
    assert tokens(played)[:3] == (1000 + 1000 * asked, 200, 100)
    assert played.usd == pytest.approx(played.told("result")[0]["total_cost_usd"], abs=1e-9)


def test_its_own_limit_ends_it_with_the_reply_that_crosses_it(lab: LabServer, tmp_path: Path) -> None:
    with ScriptedModel([LOOK]) as model:
        how = brief(tmp_path, lab.url, model).model_copy(update={"usd_left": 1.5 * LOOK_USD})
        played = play(AGENT, how)
    assert (played.ended.ending, played.usd) == ("budget", pytest.approx(2 * LOOK_USD, abs=1e-9)), played.ended


def test_dollars_of_a_model_that_the_client_has_no_price_for_are_not_believed(lab: LabServer, tmp_path: Path) -> None:
    with ScriptedModel([LOOK, END]) as model:
        played = play(AGENT, brief(tmp_path, lab.url, model).model_copy(update={"model": "some-other-model"}))
    assert (played.ended.ending, played.usage.model, played.usage.tokens) == ("done", "some-other-model", 3370)
    assert not [event for event in played.events if event.usd_total is not None]


def test_words_that_decline_without_a_call_are_a_refusal(lab: LabServer, tmp_path: Path) -> None:
    with ScriptedModel([Step(text="I can't help with that.")]) as model:
        played = play(AGENT, brief(tmp_path, lab.url, model))
    assert (played.ended.ending, played.ended.note) == ("refused", "I can't help with that.")


def test_a_silent_model_is_waited_for_in_silence_and_a_signal_from_outside_is_a_crash(
    lab: LabServer, tmp_path: Path
) -> None:
    groups: list[int] = []
    silent = threading.Event()

    def interfere(line: str, process: subprocess.Popen[str]) -> None:
        if '"init"' in line:
            groups.append(process.pid)
        if '"tool_result"' in line:
            threading.Thread(target=end, args=(process.pid,)).start()

    def end(group: int) -> None:
        silent.wait()
        os.killpg(group, signal.SIGTERM)

    with ScriptedModel([LOOK, Step(hang=True)]) as model:
        at_request(model, 2, silent.set)
        played = play(AGENT, brief(tmp_path, lab.url, model), interfere)
        assert not group_alive(groups[0])
        # What it had done is there: the session goes on after the call that was answered, and only new replies count.
        model.script = [LOOK, END]
        again = play(AGENT, brief(tmp_path, lab.url, model, played.session))
    assert tokens(played) == (1000, 200, 100, 50)
    assert (played.ended.ending, played.returncode) == ("crashed", 143), played.ended
    assert (again.ended.ending, again.session, tokens(again)) == ("done", played.session, (700, 1300, 0, 20))
    assert again.usd == pytest.approx(END_USD, abs=1e-9)


def test_an_interruption_is_a_crash_although_the_exit_status_is_0(lab: LabServer, tmp_path: Path) -> None:
    with ScriptedModel([LOOK, Step(hang=True)]) as model:
        running: list[int] = []
        at_request(model, 2, lambda: os.killpg(running[0], signal.SIGINT))
        played = play(AGENT, brief(tmp_path, lab.url, model), lambda _, process: running.append(process.pid))
    assert played.ended.ending == "crashed", played.ended
    assert played.usd == pytest.approx(LOOK_USD, abs=1e-9)


def test_a_session_that_does_not_exist_is_started_anew(lab: LabServer, tmp_path: Path) -> None:
    with ScriptedModel([LOOK, END]) as model:
        played = play(AGENT, brief(tmp_path, lab.url, model, "11111111-1111-4111-8111-111111111111"))
    assert (played.ended.ending, tokens(played)) == ("done", (1700, 1500, 100, 70))


@pytest.mark.parametrize("trouble", ["no server", "wrong token"])
def test_a_lab_that_is_not_there_is_no_success_whatever_the_exit_status(
    lab: LabServer, tmp_path: Path, trouble: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        free = f"http://127.0.0.1:{taken.getsockname()[1]}/mcp"
    with ScriptedModel([END]) as model:
        how = brief(tmp_path, free if trouble == "no server" else lab.url, model)
        played = play(AGENT, how.model_copy(update={"token": "wrong"} if trouble == "wrong token" else {}))
    assert (played.ended.ending, played.returncode) == ("tools_missing", 0), played.ended


def test_a_lab_that_goes_away_is_no_success_whatever_the_model_says(tmp_path: Path) -> None:
    (tmp_path / "lab").mkdir()
    with served(tmp_path / "lab") as server, ScriptedModel([LOOK, LOOK, END]) as model:
        at_request(model, 2, server.kill)
        played = play(AGENT, brief(tmp_path / "role", server.url, model))
    assert (played.ended.ending, played.returncode) == ("tools_missing", 0), played.ended


class Unapproved:
    """Claude Code as it would be without the approval of the lab's tools."""

    name, check = AGENT.name, AGENT.check
    keys: tuple[str, ...] = AGENT.keys

    def start(self, brief: RoleBrief) -> ClaudeAttempt:
        attempt = AGENT.start(brief)
        attempt.command.remove("mcp__lab")
        return attempt


def test_calls_that_were_not_approved_are_missing_tools(lab: LabServer, tmp_path: Path) -> None:
    with ScriptedModel([LOOK, END]) as model:
        played = play(Unapproved(), brief(tmp_path, lab.url, model))
    assert (played.ended.ending, played.returncode) == ("tools_missing", 0), played.ended


def test_without_any_key_it_says_that_it_is_not_logged_in(
    lab: LabServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HOME, str(tmp_path / "own"))
    with ScriptedModel([END]) as model:
        # The address is set beside the adapter: an own login is only looked for where no key and no address is given.
        attempt = AGENT.start(brief_of(tmp_path / "role", lab.url, "claude-sonnet-4-5", {}))
        attempt.environment[ADDRESS] = model.url

        class Prepared(Unapproved):
            def start(self, brief: RoleBrief) -> ClaudeAttempt:
                return attempt

        played = play(Prepared(), brief_of(tmp_path / "role", lab.url, "", {}))
        assert not model.requests
    assert (played.ended.ending, played.usage.tokens) == ("auth", 0), played.ended


def test_it_uses_a_login_of_the_person_only_where_no_key_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HOME, str(tmp_path / "own"))
    (tmp_path / "own").mkdir()
    (tmp_path / "own/.credentials.json").write_text("never read", encoding="utf-8")
    how = brief_of(tmp_path / "role", "http://127.0.0.1:1/mcp", "", {})
    by_login = AGENT.start(how)
    assert by_login.environment[HOME] == str(tmp_path / "own")
    assert f"Read(/{tmp_path}/own/**)" in by_login.command
    by_key = AGENT.start(how.model_copy(update={"keys": {KEY: SECRET}}))
    assert by_key.environment[HOME] == str(tmp_path / "role/home/claude")
    assert by_key.environment[KEY] == SECRET and SECRET not in "".join(by_key.command)


def test_a_subscription_tells_when_its_quota_ends(tmp_path: Path) -> None:
    attempt = ClaudeAttempt([], {}, resumed=False)
    limit = {"status": "rejected", "resetsAt": 4102444800, "rateLimitType": "five_hour"}
    lines: list[dict[str, Any]] = [
        {"type": "rate_limit_event", "rate_limit_info": limit},
        {"type": "result", "subtype": "success", "is_error": True, "api_error_status": 429, "result": "limit reached"},
    ]
    for line in lines:
        attempt.hear(json.dumps(line))
    ended = attempt.ended(Exit(returncode=1, errors=""))
    assert (ended.ending, ended.quota_until) == ("quota", "2100-01-01T00:00:00+00:00")


@pytest.mark.anyio
async def test_the_check_says_what_is_there_and_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(HOME, str(tmp_path))
    missing = await get_agent("claude_code").check({})
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", missing.version) and "/login" in missing.remedy
    assert not list(tmp_path.iterdir())
    ready = await get_agent("claude_code").check({KEY: SECRET})
    assert (ready.login, ready.remedy) == (f"by {KEY}", "") and SECRET not in ready.model_dump_json()
