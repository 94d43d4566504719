"""Agents behind the Agent Client Protocol: the real opencode, and a tiny one that ends in every way."""

import json
import shlex
import signal
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from mcp_server.agents.acp import AGENT
from mcp_server.agents.agent import Ending, RoleBrief, get_agent
from tests.agent_programs import opencode
from tests.mcp_server.agents.direct import LabServer, Played, brief_of, play, served
from tests.mcp_server.agents.inside import acp_inside
from tests.scripted_model import Call, ScriptedModel, Step, Usage4
from toolkits.core.errors import InvalidInput

TINY = shlex.join([sys.executable, str(Path(__file__).with_name("tiny_acp_agent.py"))])
KEYS = {"OPENAI_API_KEY": "sk-dummy-secret"}
DOLLARS = {"input": 3, "output": 15, "cache_read": 0.3}
"""A million tokens, as opencode is told below."""
REPLY = (1000 + 100) * 3e-6 + 200 * 0.3e-6 + 50 * 15e-6
LOOK = Step(calls=[Call("list_tasks")], usage=Usage4(1000, 200, 100, 50))


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Generator[LabServer]:
    with served(tmp_path_factory.mktemp("lab")) as server:
        yield server


def tiny_brief(lab: LabServer, folder: Path, *instructions: list[Any]) -> RoleBrief:
    return brief_of(folder, lab.url, TINY, KEYS).model_copy(update={"prompt": json.dumps(instructions)})


def tiny(lab: LabServer, folder: Path, *instructions: list[Any], **more: Any) -> Played:
    return play(AGENT, tiny_brief(lab, folder, *instructions), **more)


def configure_opencode(home: Path, model: ScriptedModel) -> None:
    options = {"baseURL": f"{model.url}/v1", "apiKey": "{env:OPENAI_API_KEY}"}
    limit = {"context": 100000, "output": 4000}
    entry = {"name": "m1", "tool_call": True, "limit": limit, "cost": DOLLARS}
    provider = {"npm": "@ai-sdk/openai-compatible", "name": "Scripted", "options": options, "models": {"m1": entry}}
    config = {
        "model": "scripted/m1",
        "small_model": "scripted/m1",
        "enabled_providers": ["scripted"],
        "provider": {"scripted": provider},
        "share": "disabled",
    }
    folder = home / ".config" / "opencode"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "opencode.json").write_text(json.dumps(config), encoding="utf-8")


@pytest.mark.slow
def test_opencode_works_with_the_lab_and_its_worktree_alone_and_goes_on_in_its_session(
    lab: LabServer, tmp_path: Path
) -> None:
    command = f"{opencode()} acp"
    shell = tmp_path / "shell-ran"
    calls = [
        Call("write", {"filePath": "a.txt", "content": "hi"}),
        Call("glob", {"pattern": "*", "path": "/etc"}),
        Call("bash", {"command": f"touch {shell}", "description": "x"}),
        Call("read", {"filePath": "/etc/passwd"}),
    ]
    with ScriptedModel([LOOK, *(Step(calls=[call]) for call in calls), Step(text="All done.")]) as model:
        configure_opencode(tmp_path / "home", model)
        first = play(AGENT, brief_of(tmp_path, lab.url, command, KEYS))
        seen = json.dumps(model.requests[-1].body)
        model.script = [*[LOOK] * 6, Step(text="Done again.")]
        second = play(AGENT, brief_of(tmp_path, lab.url, command, KEYS, first.session))
    assert (first.ended.ending, first.ended.note) == ("done", "All done."), (first.ended, first.errors)
    assert (tmp_path / "worktree" / "a.txt").read_text(encoding="utf-8") == "hi" and not shell.exists()
    assert "kmeans_assign" in seen and "root:" not in seen
    results = {line["tool"]: line["outcome"] for line in first.told("tool_result")}
    assert results["lab_list_tasks"] == results["write"] == "completed", first.lines
    assert results["glob"] == "failed" and "read" in results, first.lines
    assert first.usd == pytest.approx(6 * REPLY)
    assert (second.ended.note, second.session) == ("Done again.", first.session)
    assert second.usd == pytest.approx(REPLY)


def test_an_agent_gets_the_lab_its_files_and_no_shell(lab: LabServer, tmp_path: Path) -> None:
    asked = [
        ["ask", "other", "mcp__lab__benchmark"],
        ["ask", "other", "external_directory"],
        ["ask", "execute", "lab_benchmark"],
        ["ask", "fetch", "lab_page"],
        ["ask", "edit", "edit", "v1/kernel.cpp"],
        ["ask", "edit", "edit", "../charter.md"],
        ["ask", "edit", "edit"],
        ["ask", "read", "read", "/etc/passwd"],
    ]
    played = tiny(
        lab, tmp_path, ["lab", "list_tasks"], *asked, ["write", "f.txt", "one\ntwo\nthree\n"], ["read", "f.txt"],
        ["cost", 0.25], ["say", "All "], ["say", "done."], ["stop", "end_turn"],
    )  # fmt: skip
    assert (played.ended.ending, played.ended.note) == ("done", "All done."), played.errors
    answers = (tmp_path / "worktree" / "answers").read_text(encoding="utf-8").splitlines()
    assert [line.split(": ")[-1] for line in answers] == ["yes", "no", "no", "no", "yes", "no", "no", "no"]
    assert (tmp_path / "worktree" / "read").read_text(encoding="utf-8") == "two\n"
    assert (
        played.usd == 0.25
        and played.usage.model == TINY
        and (played.usage.input_tokens, played.usage.output_tokens) == (100, 60)
    )
    texts = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert not any(b"sk-dummy-secret" in text or lab.token.encode() in text for text in texts)


ENDINGS: list[tuple[Ending, list[list[Any]]]] = [
    ("refused", [["say", "I cannot help with that."]]),
    ("budget", [["lab", "list_tasks"], ["stop", "max_turn_requests"]]),
    ("auth", [["fail", -32000, "Authentication required"]]),
    ("quota", [["fail", -32603, "429: rate limit reached, try again at 5 pm"]]),
    ("api_error", [["fail", -32603, "503 Service Unavailable"]]),
    ("crashed", [["cost", 0.5], ["die"]]),
]


@pytest.mark.anyio
@pytest.mark.parametrize(("ending", "instructions"), ENDINGS, ids=[one[0] for one in ENDINGS])
async def test_an_ending_is_named_after_what_the_agent_said(
    ending: Ending,
    instructions: list[list[Any]],
    lab: LabServer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    played = await acp_inside(capsys)(tiny_brief(lab, tmp_path, *instructions))
    assert played.ended.ending == ending and played.ended.note, played.ended
    assert played.usd == (0.5 if ending == "crashed" else 0.0)


@pytest.mark.anyio
async def test_an_agent_that_stops_at_a_denied_call_is_told_to_go_on_but_not_for_ever(
    lab: LabServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    played = await acp_inside(capsys)(tiny_brief(lab, tmp_path, ["ask", "execute", "make"]))
    assert played.ended.ending == "crashed" and "not permitted, again and again" in played.ended.note
    assert len(played.told("note")) == 11


def test_an_interrupt_asks_the_agent_to_end_its_turn(lab: LabServer, tmp_path: Path) -> None:
    def interrupt(line: str, process: subprocess.Popen[str]) -> None:
        if '"tool_call"' in line:
            process.send_signal(signal.SIGINT)

    played = tiny(lab, tmp_path, ["lab", "list_tasks"], ["hang"], watch=interrupt)
    assert played.ended.ending == "stopped" and (tmp_path / "worktree" / "cancelled").exists()


def test_a_lab_that_is_gone_by_the_end_means_tools_missing(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    with served(tmp_path / "root") as dying:

        def kill(line: str, process: subprocess.Popen[str]) -> None:
            if '"session"' in line:
                dying.kill()

        assert tiny(dying, tmp_path, ["say", "I found no tools."], watch=kill).ended.ending == "tools_missing"


@pytest.mark.anyio
async def test_an_agent_that_cannot_use_a_server_over_http_has_no_tools(
    lab: LabServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = (await acp_inside(capsys)(brief_of(tmp_path, lab.url, f"{TINY} --no-http", KEYS))).ended
    assert ended.ending == "tools_missing" and "over HTTP" in ended.note


@pytest.mark.anyio
async def test_what_is_missing_is_said_before_anything_starts(tmp_path: Path) -> None:
    for command, said in (("", "acp:opencode acp"), ("no-such-agent --acp", "no program"), ("a 'b", "cannot be read")):
        with pytest.raises(InvalidInput, match=said):
            AGENT.start(brief_of(tmp_path, "", command, KEYS))
    assert "agent-client-protocol" in (await AGENT.check({})).version
    assert get_agent("acp") is AGENT
