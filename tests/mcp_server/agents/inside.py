"""An attempt whose program runs in the process of the tests, which has its libraries loaded already."""

import json
from asyncio import Event
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from mcp_server.agents import acp, acp_program, open_model, open_model_program
from mcp_server.agents.agent import Ended, Exit, RoleBrief
from mcp_server.agents.own_program import ProgramAttempt, tell_result
from tests.mcp_server.agents.direct import Played

Inside = Callable[[RoleBrief], Awaitable[Played]]


def open_model_inside(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Inside:
    async def run(brief: RoleBrief) -> Played:
        attempt = open_model.AGENT.start(brief)
        for name, value in attempt.environment.items():
            monkeypatch.setenv(name, value)
        job = open_model.Job.model_validate_json(_job(attempt))
        return _played(attempt, await open_model_program.play(job, brief.token), capsys)

    return run


def acp_inside(capsys: pytest.CaptureFixture[str]) -> Inside:
    async def run(brief: RoleBrief) -> Played:
        attempt = acp.AGENT.start(brief)
        job = acp.Job.model_validate_json(_job(attempt))
        return _played(attempt, await acp_program.play(job, brief.token, Event()), capsys)

    return run


def _job(attempt: ProgramAttempt) -> str:
    return Path(attempt.command[-1]).read_text(encoding="utf-8")


def _played(attempt: ProgramAttempt, ended: Ended, capsys: pytest.CaptureFixture[str]) -> Played:
    returncode = tell_result(ended)
    lines = capsys.readouterr().out.splitlines()
    events = [event for line in lines for event in attempt.hear(line)]
    understood = attempt.ended(Exit(returncode=returncode, errors=""))
    return Played(understood, events, [json.loads(line) for line in lines], returncode, "")
