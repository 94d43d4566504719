"""A role that plays a recorded transcript: to reproduce a run, and to test the lab with no model at all.

A transcript is JSON lines; lines `{"type": "tool_call", "tool": ..., "arguments": {...}}` are played, others are not.
`expect` on such a line is a part of the structured result that must come again, `expect_error` a part of the error's
text. In strings, `{role_dir}` and `{root}` stand for this role's folder and the workspace root.
"""

import os
import sys
from pathlib import Path
from typing import Any, cast

from pydantic import JsonValue, ValidationError

from mcp_server.agents.agent import AgentCheck, RoleBrief
from mcp_server.agents.client import Lab, Outcome, Program, Refused, play
from mcp_server.charter import Charter, parse
from toolkits.core.errors import InvalidInput
from toolkits.core.schema import Json, Record

WAITS = "get_result"
"""Not played: job ids are new each time, and every job is waited for anyway."""


class Replay:
    name = "replay"
    keys: tuple[str, ...] = ()

    def start(self, brief: RoleBrief) -> Program:
        charter = parse(brief.charter.read_text(encoding="utf-8"))
        read_transcript(transcript_path(charter, brief.folder))
        return Program("mcp_server.agents.replay")

    async def check(self, keys: dict[str, str]) -> AgentCheck:
        return AgentCheck(program=sys.executable)


class Call(Record, extra="ignore"):
    """One recorded line."""

    type: str
    tool: str = ""
    arguments: Json = {}
    expect: JsonValue = None
    expect_error: str = ""


def transcript_path(charter: Charter, folder: Path) -> Path:
    if not charter.transcript:
        raise InvalidInput("a replay's charter names its `transcript` in the front matter")
    return folder / charter.transcript


def read_transcript(path: Path) -> list[Call]:
    """The calls to play, in order."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        calls = [Call.model_validate_json(line) for line in lines if line.strip()]
    except OSError as error:
        raise InvalidInput(f"the transcript {path} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        raise InvalidInput(f"the transcript {path} has a line that is no JSON object with a `type`: {error}") from error
    return [call for call in calls if call.type == "tool_call" and call.tool != WAITS]


async def work(lab: Lab, charter: Charter, folder: Path) -> Outcome:
    calls = read_transcript(transcript_path(charter, folder))
    names = {"{role_dir}": str(folder), "{root}": os.environ["KERNEL_LAB_ROOT"]}
    for number, call in enumerate(calls, start=1):
        if problem := await differs(lab, filled(call, names)):
            return Outcome("crashed", f"call {number} of {len(calls)}, {call.tool}: {problem}")
    return Outcome("done", f"{len(calls)} calls played")


async def differs(lab: Lab, call: Call) -> str:
    """What came out otherwise than recorded; empty when nothing did."""
    try:
        result = await lab.finished(call.tool, call.arguments)
    except Refused as refusal:
        if call.expect_error and call.expect_error in str(refusal):
            return ""
        return f"refused: {refusal}"
    if call.expect_error:
        return f"expected an error with {call.expect_error!r}, got a result"
    return difference(call.expect, result) if call.expect is not None else ""


def difference(expected: Any, got: Any, where: str = "") -> str:
    """The first place where `got` lacks what `expected` says; objects may hold more than is expected."""
    if isinstance(expected, dict) and isinstance(got, dict):
        wanted, found = cast(Json, expected), cast(Json, got)
        pairs = ((f"{where}.{key}", value, found.get(key)) for key, value in wanted.items())
    elif (
        isinstance(expected, list)
        and isinstance(got, list)
        and len(cast("list[Any]", expected)) == len(cast("list[Any]", got))
    ):
        both = zip(cast("list[Any]", expected), cast("list[Any]", got), strict=True)
        pairs = ((f"{where}[{index}]", *pair) for index, pair in enumerate(both))
    else:
        return "" if expected == got else f"{where.lstrip('.') or 'result'} is {got!r}, recorded was {expected!r}"
    return next((said for place, a, b in pairs if (said := difference(a, b, place))), "")


def filled(call: Call, names: dict[str, str]) -> Call:
    """The call with placeholders replaced in every string of its arguments and expectations."""
    return call.model_copy(update={"arguments": _filled(call.arguments, names), "expect": _filled(call.expect, names)})


def _filled(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, str):
        for name, text in names.items():
            value = value.replace(name, text)
        return value
    if isinstance(value, dict):
        return {key: _filled(item, names) for key, item in cast(Json, value).items()}
    if isinstance(value, list):
        return [_filled(item, names) for item in cast("list[Any]", value)]
    return value


AGENT = Replay()

if __name__ == "__main__":
    sys.exit(play(work))
