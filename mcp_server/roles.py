"""Roles: agents at work in a run, each with a charter, a token, a folder and a budget.

The ledger holds what is true of a role. This module holds only the processes that this server started, and a role
that is started again after its end goes on where it was: same folder, same transcript, a new token and id.
"""

import asyncio
import json
import logging
import os
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from mcp_server.agents.agent import Agent, RoleBrief, get_agent
from mcp_server.charter import parse, render
from mcp_server.jobs import MAX_WAIT_S
from mcp_server.ledger import EvaluationRow, Ledger, RoleRow
from mcp_server.role_meter import Meter
from mcp_server.role_process import GRACE_S, RoleProcess
from mcp_server.schema import RoleAnswer, RoleState
from mcp_server.workspace import Workspace, worktree_of
from toolkits.core.errors import InvalidInput
from toolkits.core.process import interrupt_group
from toolkits.core.schema import Json, Status

POLL_S = 0.3

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Connection:
    """How a role reaches the lab."""

    url: str | None
    """None: the role starts a server of its own over stdio."""
    root: Path


@dataclass
class Live:
    """A role whose process this server watches."""

    meter: Meter
    process: RoleProcess
    started: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


class Roles:
    """Starts, watches and ends roles."""

    def __init__(self, workspace: Workspace, ledger: Ledger, connection: Callable[[], Awaitable[Connection]]) -> None:
        self._workspace = workspace
        self._ledger = ledger
        self._connection = connection
        self._live: dict[str, Live] = {}
        self._spawning = asyncio.Lock()

    async def spawn(
        self,
        run: str,
        name: str,
        charter: str,
        agent: str = "tuner",
        team: int = 1,
        evaluations: int = 0,
        minutes: float = 0.0,
        usd: float = 0.0,
    ) -> RoleAnswer:
        """Start the role, or find it running. Caps hold for this attempt at it; 0 is no cap."""
        async with self._spawning:
            earlier = self._attempts(run, team, name)
            if earlier and self._settled(earlier[-1]).state == "running":
                return self.answer(earlier[-1].id)
            adapter = get_agent(agent)
            folder = self._workspace.role_folder(run, team, name)
            self._prepare(folder, charter, run)
            token = secrets.token_urlsafe(32)
            row = self._ledger.add_role(run, team, name, agent, token, evaluations, minutes, usd, folder)
            self._tell_start(row, len(earlier) + 1)
            await self._start(row, adapter, await self._brief(row, token))
            return self.answer(row.id)

    async def wait(self, role_id: str, wait_s: float = 45.0) -> RoleAnswer:
        """The role as it stands when it ends, or after `wait_s`."""
        deadline = time.monotonic() + min(max(wait_s, 0.0), MAX_WAIT_S)
        while self._ledger.role(role_id).state == "running" or role_id in self._live:
            left = deadline - time.monotonic()
            if left <= 0:
                break
            await self._pause(role_id, left)
        return self.answer(role_id)

    async def stop(self, role_id: str) -> RoleAnswer:
        """End the role: SIGINT, a grace, and the kill of its whole group."""
        row = self._ledger.role(role_id)
        if live := self._live.get(role_id):
            live.process.stop("stopped")
            await self._ended(live)
        elif row.state == "running":
            await interrupt_group(int(row.owner.partition(":")[0]), GRACE_S)
            # The server that watches it, if it lives, has the better evidence and writes first.
            await anyio.sleep(POLL_S)
            self._settled(self._ledger.role(role_id), "stopped")
        return self.answer(role_id)

    async def close(self) -> None:
        """End every role that this server started."""
        with anyio.CancelScope(shield=True):
            for live in list(self._live.values()):
                live.process.stop("stopped")
            for live in list(self._live.values()):
                await self._ended(live)

    def answer(self, role_id: str) -> RoleAnswer:
        """What is known of the role."""
        row = self._ledger.role(role_id)
        best = self._best(row)
        spent = self._ledger.spent(row.run, row.id)
        live = self._live.get(role_id)
        # Between its process's death and its recorded end a watched role only seems to have crashed.
        ending = live is not None and not row.ended_at
        return RoleAnswer(
            role=row.id,
            name=row.name,
            agent=row.agent,
            state="running" if ending else row.state,
            evaluations=self._ledger.count_evaluations(row.run, row.id),
            best=best.result.speedup if best else None,
            best_evaluation=best.id if best else "",
            usd=spent.usd,
            tokens=spent.tokens,
            seconds=round(spent.seconds, 3),
            folder=str(row.folder),
            note=row.note or (live.meter.said if live else ""),
        )

    # --- one attempt --------------------------------------------------------------------------------------------

    def _attempts(self, run: str, team: int, name: str) -> list[RoleRow]:
        return [row for row in self._ledger.roles(run) if (row.team, row.name) == (team, name)]

    def _prepare(self, folder: Path, charter: str, run: str) -> None:
        read = parse(charter)
        task = self._ledger.run(run).task
        if read.task not in ("", task) or read.run not in ("", run):
            raise InvalidInput(
                f"the charter is for task {read.task!r} of run {read.run!r}; this is {task!r} of {run!r}"
            )
        worktree_of(folder).mkdir(exist_ok=True)
        (folder / "notes.md").touch()
        (folder / "result.json").unlink(missing_ok=True)
        (folder / "charter.md").write_text(render(read.model_copy(update={"task": task, "run": run})), encoding="utf-8")

    async def _brief(self, row: RoleRow, token: str) -> RoleBrief:
        connection = await self._connection()
        return RoleBrief(
            role=row.id,
            run=row.run,
            task=self._ledger.run(row.run).task,
            folder=row.folder,
            charter=row.folder / "charter.md",
            url=connection.url,
            root=connection.root,
            token=token,
        )

    async def _start(self, row: RoleRow, agent: Agent, brief: RoleBrief) -> None:
        """Give the role a process, and a task that watches it."""
        try:
            command = agent.command(brief)
        except InvalidInput as error:
            self._end(row, "crashed", str(error), {})
            raise
        meter = Meter(self._ledger, row)
        environment = _environment(brief) | agent.environment(brief)
        process = RoleProcess(agent, command, environment, row.folder, meter.exceeded, meter.hear)
        live = self._live[row.id] = Live(meter, process)
        live.task = asyncio.create_task(self._watch(live), name=f"role {row.id}")
        live.task.add_done_callback(lambda done: self._forget(row.id, done))
        await live.started.wait()

    async def _watch(self, live: Live) -> None:
        row = live.meter.row

        def started(pid: int) -> None:
            self._ledger.set_role(row.id, "running", pid=pid)
            live.started.set()

        try:
            ended = await live.process.run(started)
        except OSError as error:
            self._end(row, "crashed", f"its process could not be started: {error}", {})
        else:
            live.meter.write_seconds()
            state, note = ended.verdict()
            self._end(row, state, note, ended.evidence())
        finally:
            live.started.set()

    def _end(self, row: RoleRow, state: RoleState, note: str, evidence: Json) -> None:
        """Record the end once, with what the role achieved; what it left running would only slow the others."""
        self._ledger.set_role(row.id, state, note)
        self._ledger.cancel_jobs(row.id)
        answer = self.answer(row.id)
        self._ledger.append(row.run, "role_ended", answer.model_dump(mode="json") | evidence, row.id)
        text = json.dumps(answer.model_dump(mode="json") | evidence, indent=2)
        (row.folder / "result.json").write_text(f"{text}\n", encoding="utf-8")

    def _tell_start(self, row: RoleRow, attempt: int) -> None:
        caps = row.model_dump(include={"name", "agent", "team", "evaluations", "minutes", "usd"})
        self._ledger.append(row.run, "role_started", {"role": row.id, "attempt": attempt, **caps}, row.id)

    def _settled(self, row: RoleRow, state: RoleState = "crashed") -> RoleRow:
        """The row; a role whose process is dead and whose server never said so gets its end recorded."""
        if row.state == "running" or row.ended_at or row.id in self._live:
            return row
        self._end(row, state, row.note, {})
        return self._ledger.role(row.id)

    def _best(self, row: RoleRow) -> EvaluationRow | None:
        """By the interval's lower end: what is most surely fast, not what was luckiest."""
        rows = self._ledger.evaluations(row.run, row.id)
        whole = [one for one in rows if one.result.status is Status.PASSED and not one.result.partial]
        passed = [one for one in whole if one.result.speedup]
        return max(passed, key=lambda one: one.result.speedup.low if one.result.speedup else 0.0, default=None)

    # --- waiting ------------------------------------------------------------------------------------------------

    async def _pause(self, role_id: str, seconds: float) -> None:
        live = self._live.get(role_id)
        if live and live.task:
            await asyncio.wait({live.task}, timeout=seconds)
            await asyncio.sleep(0)
        else:
            await asyncio.sleep(min(seconds, POLL_S))

    async def _ended(self, live: Live) -> None:
        if live.task:
            await asyncio.wait({live.task})

    def _forget(self, role_id: str, task: asyncio.Task[None]) -> None:
        del self._live[role_id]
        if not task.cancelled() and (crash := task.exception()):
            log.error("the watch of role %s crashed", role_id, exc_info=crash)


def _environment(brief: RoleBrief) -> dict[str, str]:
    """Built from nothing: what this server's environment holds is none of a role's business."""
    lab = {"KERNEL_LAB_URL": brief.url} if brief.url else {"KERNEL_LAB_ROOT": str(brief.root)}
    return lab | {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(brief.folder),
        "LANG": "C.UTF-8",
        "KERNEL_LAB_TOKEN": brief.token,
        "KERNEL_LAB_ROLE_DIR": str(brief.folder),
    }
