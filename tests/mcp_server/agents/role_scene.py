"""Roles of all vendors in one lab, played through its front door against one scripted model. Judges nothing."""

import os
import signal
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from mcp_server.budgets import Caps
from mcp_server.ledger import Ledger
from tests.mcp_server.agents.direct import TOKEN
from tests.mcp_server.conftest import descendants
from tests.scripted_model import Request, ScriptedModel
from toolkits.core.process import started_at

LATENCY_S = 0.4
"""Of the model's replies: no vendor answers between two looks of the lab at a role's cap."""
LOOK_S = 0.03
PATIENCE_S = 240.0
DOOMED = "doomed"
"""How the folder of a role is called whose every process is killed at sight."""


class Replies(list[Request]):
    """Requests as they come; those of `together` are answered from when each of them has asked, and not faster."""

    def __init__(self, model: ScriptedModel, together: Iterable[str]) -> None:
        super().__init__()
        self._model = model
        self._together = set(together)

    def append(self, request: Request) -> None:
        super().append(request)
        if request.model not in self._together or request.aside:
            return
        while not self._model.leaving.wait(LATENCY_S):
            if self._together <= {one.model for one in self}:
                return


@dataclass
class Scene:
    """A connection of the administrator, and what was seen of the roles' processes."""

    root: Path
    server: int
    """Process id."""
    client: Client
    tokens: set[str] = field(default_factory=set[str])
    sessions: dict[str, set[int]] = field(default_factory=dict[str, set[int]])
    """Role folder -> the process sessions that were its."""

    async def asked(self, tool: str, **arguments: object) -> dict[str, Any]:
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error and result.structured_content, result.content
        return result.structured_content

    async def open_run(self, run: str, failed: Mapping[str, int] | None = None, config: str = "{}") -> None:
        """`failed`: agent -> attempts of it that other roles of the run have seen crash just now."""
        await self.asked("open_run", run=run, task="scale", config=config)
        ledger = Ledger(self.root / "lab.db")
        for number, (agent, times) in enumerate((failed or {}).items()):
            name = f"before-{number}"
            row = ledger.add_role(run, 1, name, agent, f"unused-{run}-{number}", Caps(), self.root / run / name)
            for _ in range(times):
                ledger.end_attempt(row.id, ledger.add_attempt(row, agent, ""), "crashed", "killed")
            ledger.set_role(row.id, "crashed")
        ledger.close()

    async def spawned(self, name: str, agent: str, charter: str = "Make it fast.", **caps: float) -> dict[str, Any]:
        return await self.asked("spawn_role", name=name, charter=charter, agent=agent, **caps)

    async def ended(self, role: dict[str, Any]) -> dict[str, Any]:
        """The last answer about the role, with the processes that it left."""
        while (answer := await self.asked("wait_role", role=role["role"], wait_s=30))["state"] == "running":
            pass
        return answer | {"left": self.left(answer["folder"])}

    async def watch(self) -> None:
        """Learn tokens and process sessions as they appear, and kill the doomed."""
        while True:
            for pid in descendants(self.server):
                self._look(pid)
            await anyio.sleep(LOOK_S)

    def _look(self, pid: int) -> None:
        environment = _environment(pid)
        if not (folder := environment.get("KERNEL_LAB_ROLE_DIR")):
            return
        with suppress(ProcessLookupError):
            self.tokens.add(environment["KERNEL_LAB_TOKEN"])
            self.sessions.setdefault(folder, set()).add(os.getsid(pid))
            if Path(folder).name.startswith(DOOMED):
                os.kill(pid, signal.SIGKILL)

    def left(self, folder: str) -> list[str]:
        """Processes of the role that are alive, by environment, working directory or session."""
        pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
        return [f"{pid} {_words(pid)}" for pid in pids if self._belongs(pid, folder) and started_at(pid) is not None]

    def _belongs(self, pid: int, folder: str) -> bool:
        with suppress(OSError):
            in_session = os.getsid(pid) in self.sessions.get(folder, set())
            return in_session or folder in str(Path(f"/proc/{pid}/cwd").readlink()) or folder in str(_environment(pid))
        return False


@asynccontextmanager
async def scene(root: Path, url: str, server: int) -> AsyncGenerator[Scene]:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
        anyio.create_task_group() as tasks,
    ):
        seen = Scene(root, server, client)
        tasks.start_soon(seen.watch)
        with anyio.fail_after(PATIENCE_S):
            yield seen
        tasks.cancel_scope.cancel()


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await anyio.sleep(LOOK_S)


def _environment(pid: int) -> dict[str, str]:
    try:
        text = Path(f"/proc/{pid}/environ").read_text(encoding="utf-8", errors="replace")
    except OSError:  # it has ended meanwhile
        return {}
    parts = [one.partition("=") for one in text.split("\0")]
    return {name: value for name, _, value in parts}


def _words(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace").replace("\0", " ")[:300]
    return ""
