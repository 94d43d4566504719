"""An agent for tests: a real process that runs the shell script in its charter, installed as any distribution would.

Lines `{"kind": ...}` of its output are events, a line `{"ending": ...}` says how it ended, all others mean nothing.
"""

import importlib
import json
import shlex
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mcp_server.endings import Patience
from mcp_server.keys import Secrets
from mcp_server.ledger import Ledger
from mcp_server.role_means import Connection, Means
from mcp_server.roles import Roles
from mcp_server.workspace import Workspace
from toolkits.core.schema import Json

RUN = "run1"
NO_WAIT = Patience(backoff_s=(0.0, 0.0), quota_s=0.0, quota_pauses=1)
SOURCE = """
from mcp_server.agents.agent import AgentCheck, AgentEvent, Ended
from mcp_server.charter import parse

class Attempt:
    def __init__(self, brief):
        self.command = ["/bin/sh", "-c", parse(brief.charter.read_text()).prose]
        told = {"ROLE": brief.role, "SESSION": brief.session, "MODEL": brief.model, "PROMPT": brief.prompt}
        self.environment = told | brief.keys
        self.result = None

    def hear(self, line):
        if line.startswith('{"ending"'):
            self.result = Ended.model_validate_json(line)
        return [AgentEvent.model_validate_json(line)] if line.startswith('{"kind"') else []

    def poll(self):
        return []

    def ended(self, exit):
        return self.result or Ended(ending="crashed", note=f"{exit.how}, no result: {exit.errors}", evidence=[exit.how])

class Shell:
    def __init__(self, name):
        self.name = name
        self.keys = ("SHELL_API_KEY",)

    def start(self, brief):
        return Attempt(brief)

    async def check(self, keys):
        return AgentCheck(program="/bin/sh")

AGENT = Shell("shell")
OTHER = Shell("other")
"""
COUNTED = "n=$(($(cat n 2>/dev/null || echo 0) + 1)); echo $n > n\n"
"""Beginning of a script: `$n` is the number of this attempt in this worktree."""
DONE = 'echo \'{"ending": "done", "note": "all tried"}\'\n'


def install(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    metadata = site / "shell_agent-1.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: shell-agent\nVersion: 1\n")
    points = "[kernel_lab.agents]\nshell = shell_agent_source:AGENT\nother = shell_agent_source:OTHER\n"
    (metadata / "entry_points.txt").write_text(points)
    (site / "shell_agent_source.py").write_text(SOURCE)
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    importlib.invalidate_caches()


@asynccontextmanager
async def roles_of(
    root: Path, config: Json | None = None, keys: dict[str, str] | None = None, patience: Patience = NO_WAIT
) -> AsyncGenerator[tuple[Roles, Ledger]]:
    workspace = Workspace(root)
    ledger = Ledger(workspace.database)
    ledger.open_run(RUN, "rmsnorm", config or {})

    async def connection() -> Connection:
        return Connection(url="http://127.0.0.1:9/mcp", root=root)

    roles = Roles(Means(workspace, ledger, keys or {}, Secrets(keys), patience), connection)
    try:
        yield roles, ledger
    finally:
        await roles.close()
        ledger.close()


def says(**line: object) -> str:
    return f"echo {shlex.quote(json.dumps(line))}\n"


def spends(model: str = "", **tokens: int) -> str:
    return says(kind="spend", usage={"model": model, **tokens})
