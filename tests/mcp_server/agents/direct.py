"""Runs one attempt of an adapter as the lab does, without the lab's roles: a process, its lines, its end."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp_server.agents.agent import Agent, AgentEvent, Ended, Exit, RoleBrief, Usage

ROOT = Path(__file__).parents[3]
TOKEN = "admin-token-of-the-tests"
PATIENCE_S = 280.0


@dataclass
class Played:
    """What came of an attempt."""

    ended: Ended
    events: list[AgentEvent]
    lines: list[dict[str, Any]]
    returncode: int
    errors: str

    @property
    def usage(self) -> Usage:
        """All that was booked by token."""
        booked = [event.usage for event in self.events if event.usage]
        sums = {name: sum(getattr(one, name) for one in booked) for name in Usage.model_fields if name != "model"}
        return Usage(model=booked[0].model if booked else "", **sums)

    @property
    def usd(self) -> float:
        """What the agent itself said last that the attempt cost."""
        return next((event.usd_total for event in reversed(self.events) if event.usd_total is not None), 0.0)

    @property
    def session(self) -> str:
        return next(event.text for event in self.events if event.kind == "session")

    def told(self, type: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line.get("type") == type]


@dataclass
class LabServer:
    """The lab over HTTP, as a process that can be killed."""

    url: str
    process: subprocess.Popen[str] = field(repr=False)
    token: str = TOKEN

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


@contextmanager
def served(root: Path, **more: str) -> Generator[LabServer]:
    """Beyond the rest, `more` is in its environment."""
    command = [sys.executable, "-P", "-m", "mcp_server", "serve", "--http", "--port", "0", "--root", str(root)]
    environment = {"PATH": os.environ["PATH"], "HOME": str(root), "KERNEL_LAB_ADMIN_TOKEN": TOKEN, **more}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout
        server = LabServer(json.loads(process.stdout.readline())["url"], process)
        try:
            yield server
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                process.wait(PATIENCE_S)


def brief_of(folder: Path, url: str, model: str, keys: dict[str, str], session: str = "") -> RoleBrief:
    """What the lab would hand to an adapter for a role that lives in this folder."""
    (folder / "worktree").mkdir(parents=True, exist_ok=True)
    (folder / "charter.md").write_text("Make `scale` fast.", encoding="utf-8")
    return RoleBrief(
        role="r1", run="run", task="scale", folder=folder, charter=folder / "charter.md", url=url, root=folder,
        token=TOKEN, prompt="Make `scale` fast.", model=model, session=session, keys=keys,
    )  # fmt: skip


def play(agent: Agent, brief: RoleBrief, watch: Callable[[str, subprocess.Popen[str]], None] | None = None) -> Played:
    """One attempt to its end; `watch` sees every line as it comes and may interfere."""
    attempt = agent.start(brief)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(brief.home),
        "LANG": "C.UTF-8",
        "KERNEL_LAB_TOKEN": brief.token,
        **attempt.environment,
    }
    brief.home.mkdir(parents=True, exist_ok=True)
    lines: list[str] = []
    events: list[AgentEvent] = []
    with (brief.folder / "stderr.txt").open("w+", encoding="utf-8") as errors:
        process = subprocess.Popen(
            attempt.command, cwd=brief.worktree, env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True,
        )  # fmt: skip
        patience = threading.Timer(PATIENCE_S, process.kill)
        patience.start()
        assert process.stdout
        with process.stdout:
            for line in process.stdout:
                lines.append(line)
                events += [*attempt.hear(line), *attempt.poll()]
                if watch:
                    watch(line, process)
        returncode = process.wait()
        events += attempt.poll()
        patience.cancel()
        errors.seek(0)
        said = errors.read()
    parsed = [json.loads(line) for line in lines if line.startswith("{")]
    return Played(attempt.ended(Exit(returncode=returncode, errors=said)), events, parsed, returncode, said)
