"""The replay agent: recorded tool calls played by a real role of a real stdio server, through a server of its own."""

import json
import os
import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

from mcp_server.agents.agent import RoleBrief, get_agent
from mcp_server.agents.replay import difference
from mcp_server.schema import RoleAnswer
from toolkits.core.errors import InvalidInput
from toolkits.core.schema import Json

pytestmark = pytest.mark.anyio
TASK = "rmsnorm"


async def played(root: Path, lines: list[Json]) -> RoleAnswer:
    """Spawn a replay role as a person would, with no run open, and wait for its end."""
    root.mkdir()
    transcript = root / "recorded.jsonl"
    transcript.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    charter = f"---\ntask: {TASK}\ntranscript: {transcript}\n---\n"
    command = ["-P", "-m", "mcp_server", "serve", "--root", str(root)]
    env = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}
    async with Client(StdioServerParameters(command=sys.executable, args=command, env=env, cwd=root)) as client:
        answer = await client.call_tool("spawn_role", {"name": "again", "agent": "replay", "charter": charter})
        assert not answer.is_error, answer.content
        role = RoleAnswer.model_validate(answer.structured_content)
        while role.state == "running":
            answer = await client.call_tool("wait_role", {"role": role.role})
            role = RoleAnswer.model_validate(answer.structured_content)
        return role


def called(tool: str, expect: Json | None = None, expect_error: str = "", **arguments: object) -> Json:
    return {"type": "tool_call", "tool": tool, "arguments": arguments, "expect": expect, "expect_error": expect_error}


async def test_a_transcript_is_played_with_its_expectations_and_placeholders(tmp_path: Path) -> None:
    note = json.dumps({"folder": "{role_dir}"})
    role = await played(
        tmp_path / "lab",
        [
            {"type": "progress", "text": "lines of other types are passed over"},
            called("describe_task", {"name": TASK}, task=TASK),
            called("get_result", id="a job of another day"),
            called("compile", {"ok": True, "state": "done"}, task=TASK, path="naive"),
            called("write_history", {"kind": "note", "body": {"folder": "{role_dir}"}}, kind="note", body=note),
            called("compile", expect_error="no task 'nothing'", task="nothing", path="naive"),
        ],
    )
    assert (role.state, role.note) == ("done", "4 calls played")


async def test_a_different_answer_ends_the_replay_with_the_difference(tmp_path: Path) -> None:
    lines = [called("describe_task", {"name": "matmul"}, task=TASK), called("list_tasks")]
    role = await played(tmp_path / "lab", lines)
    assert role.state == "crashed"
    assert role.note.startswith("call 1 of 2, describe_task: name is 'rmsnorm', recorded was 'matmul'")


async def test_a_charter_without_a_transcript_is_refused_with_what_is_missing(tmp_path: Path) -> None:
    brief = RoleBrief(
        role="r1",
        run="run1",
        task=TASK,
        folder=tmp_path,
        charter=tmp_path / "charter.md",
        url="",
        root=tmp_path,
        token="t",
    )
    for front, told in (("", "names its `transcript`"), ("transcript: gone.jsonl\n", "No such file")):
        brief.charter.write_text(f"---\n{front}---\n", encoding="utf-8")
        with pytest.raises(InvalidInput, match=told):
            get_agent("replay").start(brief)


def test_the_difference_names_the_first_place_that_is_otherwise() -> None:
    got = {"a": [1, {"b": 2.0}], "more": True}
    assert difference({"a": [1, {"b": 2}]}, got) == ""
    assert difference({"a": [1, {"b": 3}]}, got) == "a[1].b is 2.0, recorded was 3"
    assert difference({"a": [1]}, got) == "a is [1, {'b': 2.0}], recorded was [1]"
    assert difference({"c": 1}, got) == "c is None, recorded was 1"
