"""Open models against a scripted one: how attempts end, what they spend and may touch, how they go on."""

import json
import os
import signal
import socket
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest

from mcp_server.agents.agent import Ending
from mcp_server.agents.open_model import AGENT
from tests.mcp_server.agents.direct import LabServer, brief_of, play, served
from tests.mcp_server.agents.inside import Inside, open_model_inside
from tests.mcp_server.conftest import write_task
from tests.scripted_model import Call, ScriptedModel, Step, Usage4

LOOK = Step(calls=[Call("list_tasks")], usage=Usage4(1000, 200, 100, 50))
END = Step(text="All done.", usage=Usage4(700, 1300, 0, 20))


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Generator[LabServer]:
    root = tmp_path_factory.mktemp("lab")
    write_task(root / "kernels" / "scale")
    with served(root) as server:
        yield server


def keys_of(model: ScriptedModel, **more: str) -> dict[str, str]:
    return {"OPENAI_BASE_URL": f"{model.url}/v1", **more}


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Inside:
    return open_model_inside(monkeypatch, capsys)


def test_a_role_works_with_the_lab_and_its_own_files_and_every_reply_is_booked_before_its_calls(
    lab: LabServer, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("not for models", encoding="utf-8")
    (tmp_path / "worktree").mkdir()
    (tmp_path / "worktree" / "way_out").symlink_to(tmp_path / "secret")
    files = [
        Call("write_file", {"path": "v1/kernel.cpp", "content": "int a;\nint b;\n"}),
        Call("edit_file", {"path": "v1/kernel.cpp", "old": "int b;", "new": "int c;"}),
        Call("edit_file", {"path": "v1/kernel.cpp", "old": "int", "new": "long"}),
        Call("read_file", {"path": "v1/kernel.cpp", "first_line": 2}),
        Call("read_file", {"path": "../secret"}),
        Call("read_file", {"path": "way_out"}),
        Call("write_file", {"path": "/tmp/out", "content": ""}),
        Call("list_files"),
    ]
    with ScriptedModel([LOOK, Step(calls=files, usage=Usage4(2000, 0, 0, 300)), END]) as model:
        played = play(AGENT, brief_of(tmp_path, lab.url, "open-1", keys_of(model, OPENAI_API_KEY="sk-dummy-secret")))
        answers = [one["content"] for one in model.requests[-1].body["messages"] if one["role"] == "tool"]
        assert {"(set)"} == {request.headers["authorization"] for request in model.requests}
    assert (played.ended.ending, played.ended.note) == ("done", "All done.")
    usage = played.usage
    assert usage.model == "open-1"
    assert (usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens) == (3700, 1500, 100)
    assert usage.output_tokens == 370
    assert [line["type"] for line in played.lines][:4] == ["session", "reply", "tool_call", "tool_result"]
    assert (tmp_path / "worktree" / "v1" / "kernel.cpp").read_text(encoding="utf-8") == "int a;\nint c;\n"
    assert '"scale"' in answers[0] and "occurs 2 times" in answers[3] and answers[4] == "int c;\n"
    assert all("outside your working directory" in answer for answer in answers[5:8])
    assert "v1/kernel.cpp  14" in answers[8]
    assert not [line for line in played.lines if "not for models" in json.dumps(line)]
    written = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert not any(b"sk-dummy-secret" in text or lab.token.encode() in text for text in written)


@pytest.mark.anyio
async def test_a_quota_is_told_with_its_end_and_the_next_attempt_resumes_the_session(
    lab: LabServer, tmp_path: Path, inside: Inside
) -> None:
    with ScriptedModel([LOOK, LOOK, Step(http=429, headers={"retry-after": "120"})]) as model:
        first = await inside(brief_of(tmp_path, lab.url, "open-1", keys_of(model)))
        assert first.ended.ending == "quota" and first.ended.quota_until.endswith("+00:00")
        assert len(model.requests) == 3  # a quota is not tried again
        model.script = [LOOK, LOOK, END]
        again = brief_of(tmp_path, lab.url, "open-1", keys_of(model), first.session).model_copy(
            update={"prompt": "Go on."}
        )
        second = await inside(again)
        messages = model.requests[-1].body["messages"]
    assert second.ended.ending == "done" and second.session == first.session
    assert (first.usage.output_tokens, second.usage.output_tokens) == (100, 20)
    assert [one["role"] for one in messages if one["role"] != "system"] == [
        "user", "assistant", "tool", "assistant", "tool", "user",
    ]  # fmt: skip
    assert messages[-1]["content"] == "Go on."


CUT = {
    "id": "cut",
    "object": "chat.completion",
    "created": 0,
    "model": "open-1",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "And"}, "finish_reason": "length"}],
}
ENDINGS: list[tuple[str, list[Step], Ending, int]] = [
    ("401", [LOOK, Step(http=401)], "auth", 2),
    ("500", [LOOK, Step(http=500)], "api_error", 5),
    ("400", [Step(http=400, body={"error": {"message": "no tools for this model"}})], "api_error", 1),
    ("a cut reply", [LOOK, Step(http=200, body=CUT)], "crashed", 2),
    ("no money", [Step(http=429, body={"error": {"message": "pay", "code": "insufficient_quota"}})], "quota", 1),
    ("a refusal", [Step(refuse=True)], "refused", 1),
    ("words of refusal", [Step(text="I'm sorry, but I can\u2019t help with that.")], "refused", 1),
    ("the same words after work", [LOOK, Step(text="I can't make it faster than this.")], "done", 2),
]


@pytest.mark.anyio
@pytest.mark.parametrize(("name", "script", "ending", "requests"), ENDINGS, ids=[one[0] for one in ENDINGS])
async def test_an_ending_is_named_after_what_the_endpoint_said(
    name: str,
    script: list[Step],
    ending: Ending,
    requests: int,
    lab: LabServer,
    tmp_path: Path,
    inside: Inside,
) -> None:
    with ScriptedModel(script) as model:
        ended = (await inside(brief_of(tmp_path, lab.url, "open-1", keys_of(model)))).ended
        assert (ended.ending, len(model.requests)) == (ending, requests), ended
    assert ended.note


@pytest.mark.anyio
async def test_an_endpoint_that_is_not_there_is_tried_a_few_times_and_reported(
    lab: LabServer, tmp_path: Path, inside: Inside
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and never listens
        keys = {"OPENAI_BASE_URL": f"http://127.0.0.1:{taken.getsockname()[1]}/v1"}
        played = await inside(brief_of(tmp_path, lab.url, "open-1", keys))
    assert played.ended.ending == "api_error" and len(played.told("retry")) == 3


@pytest.mark.anyio
async def test_a_lab_that_dies_means_tools_missing_and_so_does_one_that_was_never_there(
    tmp_path: Path, inside: Inside
) -> None:
    (tmp_path / "root").mkdir()
    with served(tmp_path / "root") as dying, ScriptedModel([LOOK, LOOK, END]) as model:

        def kill(line: str, process: subprocess.Popen[str]) -> None:
            if '"tool_result"' in line:
                dying.kill()

        played = play(AGENT, brief_of(tmp_path, dying.url, "open-1", keys_of(model)), kill)
        assert played.ended.ending == "tools_missing", played.ended
        assert played.usage.output_tokens == 100
        late = await inside(brief_of(tmp_path, dying.url, "open-1", keys_of(model)))
        assert late.ended.ending == "tools_missing" and late.usage.tokens == 0


@pytest.mark.anyio
async def test_an_interrupt_ends_a_silent_model_at_once_and_keeps_what_was_said(
    lab: LabServer, tmp_path: Path, inside: Inside
) -> None:
    with ScriptedModel([LOOK, Step(hang=True)]) as model:

        def interrupt(line: str, process: subprocess.Popen[str]) -> None:
            if '"tool_result"' in line:
                process.send_signal(signal.SIGINT)

        played = play(AGENT, brief_of(tmp_path, lab.url, "open-1", keys_of(model)), interrupt)
        assert (played.ended.ending, played.returncode) == ("stopped", 0)
        assert played.usage.output_tokens == 50
        model.script = [LOOK, END]
        on = await inside(brief_of(tmp_path, lab.url, "open-1", keys_of(model), played.session))
    assert on.ended.ending == "done" and on.usage.output_tokens == 20


def test_a_killed_program_has_crashed_whatever_it_said_before(lab: LabServer, tmp_path: Path) -> None:
    with ScriptedModel([LOOK, Step(hang=True)]) as model:

        def kill(line: str, process: subprocess.Popen[str]) -> None:
            if '"tool_call"' in line:
                os.killpg(process.pid, signal.SIGKILL)

        played = play(AGENT, brief_of(tmp_path, lab.url, "open-1", keys_of(model)), kill)
    assert played.ended.ending == "crashed" and "signal 9" in played.ended.note
