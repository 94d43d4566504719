"""What `kernel-lab doctor` says of the agents that could play roles."""

from pathlib import Path

import pytest

from mcp_server import doctor_agents
from mcp_server.agents.agent import agents
from tests.agent_programs import codex

pytestmark = pytest.mark.anyio
SECRET = "dummy-key-of-this-test"


async def test_each_agent_is_shown_with_its_version_and_login_and_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{codex().parent}:/usr/bin:/bin")
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    found = {check.name: check for check in await doctor_agents.checks()}
    assert list(found) == agents()
    assert found["codex"].state == "ok" and "logged in by OPENAI_API_KEY" in found["codex"].seen
    assert found["opencode"].seen == "not installed" and "npm install" in found["opencode"].remedy
    assert found["tuner"].state == "ok"
    assert SECRET not in str(found)


async def test_who_is_not_logged_in_is_told_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{codex().parent}:/usr/bin:/bin")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    found = {check.name: check for check in await doctor_agents.checks()}
    assert found["codex"].state == "note" and "not logged in" in found["codex"].seen
    assert "codex login" in found["codex"].remedy and "OPENAI_BASE_URL" in found["open_model"].remedy
