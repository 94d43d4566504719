"""Clients in the middle of a conversation: a real one with a scripted model, and our own loop with a real small one."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from mcp_server.agents.open_model import AGENT
from tests.agent_programs import bare_environment
from tests.clients.people import Person, Served
from tests.mcp_server.agents.direct import brief_of
from tests.scripted_model import Call, ScriptedModel, Step
from tests.small_model import Choices, SmallModel

PATIENCE_S = 280.0
"""Before a test gives up; nothing is concluded from time."""
WORKLOAD = "n8192_k256_d64"
HOLD = """
import sys, anyio
from toolkits.core.device import lease
async def hold():
    async with lease():
        print("held", flush=True)
        sys.stdin.read()
anyio.run(hold)
"""


class Scripted:
    """A real client, attached over stdio, with a kernel of its own to measure."""

    def __init__(self, name: str, home: Path, model: ScriptedModel, temporary: Path) -> None:
        self.person = Person(name, home, {"TMPDIR": str(temporary)})
        self.person.own_solution()
        self.person.behind(model.url)
        self.person.lab("attach", name)
        self.model = model

    @property
    def root(self) -> Path:
        """Of the lab that it uses."""
        return self.person.root

    @property
    def calls(self) -> int:
        """How many replies were asked of its model."""
        return len(self.model.turns)

    def told(self) -> str:
        """All that the model was told so far."""
        return str(self.model.turns[-1].body)

    @contextmanager
    def measuring(self) -> Generator[subprocess.Popen[bytes]]:
        """It measures its kernel, then asks for the result; a turn more when it is done costs nothing."""
        measure = {"task": "kmeans_assign", "path": "mine", "workloads": [WORKLOAD]}
        ask = Step(calls=[Call("get_result", {"id": "<job>"})])
        self.model.script = [Step(calls=[Call("benchmark", measure)]), *[ask] * 8, Step(text="Measured.")]
        self.model.requests.clear()
        with _ended(self.person.start("Measure my kernel.")) as process:
            yield process

    def asking_for(self, job: str) -> None:
        """In a new session."""
        self.model.script = [Step(calls=[Call("get_result", {"id": job})]), Step(text="Measured.")]
        self.person.ask("What came of it?")


class Small:
    """Our loop, over HTTP, with a real model of 135 million parameters, measuring a kernel that comes with a task."""

    def __init__(self, home: Path, lab: Served) -> None:
        self.home = home
        self._lab = lab
        self._sessions = 0

    @property
    def root(self) -> Path:
        return self._lab.root

    @property
    def calls(self) -> int:
        return self.told().count('"type": "tool_call"')

    def told(self) -> str:
        return self._output.read_text(encoding="utf-8")

    @contextmanager
    def measuring(self) -> Generator[subprocess.Popen[bytes]]:
        """To ask for the same content again is to join the work."""
        measure = {"benchmark": {"task": ["kmeans_assign"], "path": ["simd"], "workloads": [[WORKLOAD]]}}
        with self._session([measure] * 4) as process:
            yield process

    def asking_for(self, job: str) -> None:
        with self._session([{"get_result": {"id": [job]}}]) as process:
            process.wait()

    @contextmanager
    def _session(self, choices: Choices) -> Generator[subprocess.Popen[bytes]]:
        self._sessions += 1
        folder = self.home / f"session{self._sessions}"
        self._output = folder / "output.txt"
        with SmallModel(choices) as model:
            brief = brief_of(folder, self._lab.url, model.name, {"OPENAI_BASE_URL": model.url})
            brief = brief.model_copy(update={"token": self._lab.token})
            attempt = AGENT.start(brief)
            environment = bare_environment(brief.home, KERNEL_LAB_TOKEN=brief.token) | attempt.environment
            with self._output.open("wb") as output:
                process = subprocess.Popen(attempt.command, cwd=brief.worktree, env=environment, stdout=output)
            with _ended(process):
                yield process


Client = Scripted | Small


@contextmanager
def device_held(temporary: Path) -> Generator[Callable[[], None]]:
    """Another process has the device until the function is called."""
    environment = os.environ | {"TMPDIR": str(temporary)}
    command = [sys.executable, "-c", HOLD]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdin and holder.stdout
        holder.stdout.readline()
        yield holder.stdin.close


def until(holds: Callable[[], bool]) -> None:
    """Come back when it holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, "what was waited for never came"
        time.sleep(0.05)


@contextmanager
def _ended(process: subprocess.Popen[bytes]) -> Generator[subprocess.Popen[bytes]]:
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
