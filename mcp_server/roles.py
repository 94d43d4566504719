"""Roles: agents at work in a run, each with a charter, a token, a folder and a budget.

The ledger holds what is true of a role. This module holds only the roles that this server watches, and a role that is
started again after its end goes on where it was: same folder, same transcript, a new token and id.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio

from mcp_server import worktrees
from mcp_server.agents.agent import Ended, get_agent
from mcp_server.agents.specs import AgentSpec, read_specs
from mcp_server.budgets import Caps
from mcp_server.charter import parse, render
from mcp_server.jobs import MAX_WAIT_S
from mcp_server.ledger import EvaluationRow, RoleRow, owner_alive
from mcp_server.prices import Prices
from mcp_server.role_admission import check_affordable
from mcp_server.role_means import Connection, Means, written
from mcp_server.role_process import GRACE_S
from mcp_server.role_work import LOST, RoleWork
from mcp_server.schema import RoleAnswer, RoleState
from mcp_server.workspace import worktree_of
from toolkits.core.errors import InvalidInput
from toolkits.core.process import interrupt_group
from toolkits.core.schema import Status

POLL_S = 0.3
STOPPED = Ended(ending="stopped", note="ended by the lab: stopped")

log = logging.getLogger(__name__)


@dataclass
class Live:
    """A role that this server watches."""

    work: RoleWork
    task: asyncio.Task[None]


class Roles:
    """Starts, watches and ends roles."""

    def __init__(self, means: Means, connection: Callable[[], Awaitable[Connection]]) -> None:
        self._means = means
        self._workspace = means.workspace
        self._ledger = means.ledger
        self._ledger.redact = means.secrets.hidden
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
        caps: Caps | None = None,
        parent: RoleRow | None = None,
    ) -> RoleAnswer:
        """Start the role, or find it running. Caps hold for this row of the role, with its helpers."""
        async with self._spawning:
            caps = caps or Caps()
            name = f"{parent.name}.{name}" if parent else name
            earlier = self._earlier(run, team, name)
            if earlier and self._settled(earlier[-1]).state == "running":
                return self.answer(earlier[-1].id)
            specs = read_specs(agent)
            for spec in specs:
                get_agent(spec.name)
            check_affordable(self._ledger, Prices(self._workspace.root), run, caps, specs, parent)
            row, token = await self._registered(run, team, name, charter, agent, caps, parent)
            self._tell_start(row, len(earlier) + 1)
            await self._start(row, specs, token)
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
            live.work.stop(STOPPED)
            await asyncio.wait({live.task})
        elif row.state == "running":
            await self._stop_elsewhere(row)
        return self.answer(role_id)

    async def close(self) -> None:
        """End every role that this server watches."""
        with anyio.CancelScope(shield=True):
            lives = list(self._live.values())
            for live in lives:
                live.work.stop(STOPPED)
            if lives:
                await asyncio.wait({live.task for live in lives})

    def answer(self, role_id: str) -> RoleAnswer:
        """What is known of the role."""
        row = self._ledger.role(role_id)
        best = self._best(row)
        spent = self._ledger.spent(row.run, row.id)
        live = self._live.get(role_id)
        said = live.work.meter.said if live and live.work.meter else ""
        return RoleAnswer(
            role=row.id,
            name=row.name,
            agent=row.acting or row.agent,
            state=row.state,
            evaluations=self._ledger.count_evaluations(row.run, row.id),
            best=best.result.speedup if best else None,
            best_evaluation=best.id if best else "",
            usd=round(spent.usd, 6),
            tokens=spent.tokens,
            seconds=round(spent.seconds, 3),
            attempts=len(self._ledger.attempts(row.id)),
            parent=row.parent,
            folder=str(row.folder),
            note=row.note or said,
        )

    # --- the start ----------------------------------------------------------------------------------------------

    def _earlier(self, run: str, team: int, name: str) -> list[RoleRow]:
        return [row for row in self._ledger.roles(run) if (row.team, row.name) == (team, name)]

    async def _registered(
        self, run: str, team: int, name: str, charter: str, agent: str, caps: Caps, parent: RoleRow | None
    ) -> tuple[RoleRow, str]:
        """The role's folder and its row; a charter that does not fit starts nothing."""
        read = parse(charter)
        task = self._ledger.run(run).task
        if read.task not in ("", task) or read.run not in ("", run):
            raise InvalidInput(
                f"the charter is for task {read.task!r} of run {read.run!r}; this is {task!r} of {run!r}"
            )
        folder = self._workspace.role_folder(run, team, name)
        (folder / "notes.md").touch()
        (folder / "result.json").unlink(missing_ok=True)
        (folder / "charter.md").write_text(render(read.model_copy(update={"task": task, "run": run})), encoding="utf-8")
        wanted = self._workspace.task(task)
        start = self._workspace.solution(wanted, wanted.start)
        repository = self._workspace.repository(run)
        await worktrees.prepared(repository, worktree_of(folder), f"team-{team:03d}/{name}", start)
        token = secrets.token_urlsafe(32)
        self._means.secrets.add(token)
        row = self._ledger.add_role(run, team, name, agent, token, caps, folder, parent.id if parent else "")
        return row, token

    async def _start(self, row: RoleRow, specs: list[AgentSpec], token: str) -> None:
        """Give the role its work, and wait until its first process runs or will not."""
        work = RoleWork(self._means, row, specs, token, await self._connection())
        task = asyncio.create_task(self._watched(work), name=f"role {row.id}")
        self._live[row.id] = Live(work, task)
        task.add_done_callback(lambda done: self._forget(row.id, done))
        waiting = asyncio.create_task(work.started.wait())
        await asyncio.wait({task, waiting}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if work.refusal and task.done() and len(specs) == 1:
            raise work.refusal

    def _tell_start(self, row: RoleRow, start: int) -> None:
        about = row.model_dump(include={"name", "agent", "team", "parent"}) | row.caps.model_dump()
        self._ledger.append(row.run, "role_started", {"role": row.id, "attempt": start, **about}, row.id)

    # --- the end ------------------------------------------------------------------------------------------------

    async def _watched(self, work: RoleWork) -> None:
        ended = Ended(ending="crashed", note=LOST)
        try:
            ended = await work.run()
        finally:
            with anyio.CancelScope(shield=True):
                await self._end_helpers(work.row)
            self._end(work.row, ended)

    async def _end_helpers(self, row: RoleRow) -> None:
        """A helper works for its parent, and not beyond its end."""
        for helper in self._ledger.helpers(row):
            if helper.state == "running":
                await self.stop(helper.id)

    def _end(self, row: RoleRow, ended: Ended) -> None:
        """Record the end once, with what the role achieved; what it left running would only slow the others."""
        self._ledger.set_role(row.id, ended.ending, ended.note)
        self._ledger.cancel_jobs(row.id)
        answer = self.answer(row.id).model_dump(mode="json")
        evidence = ended.model_dump(mode="json", exclude={"note"})
        told = self._ledger.append(row.run, "role_ended", answer | evidence, row.id)
        attempts = [one.model_dump(mode="json") for one in self._ledger.attempts(row.id)]
        written(row.folder, "result.json", told.body | {"attempts_made": attempts})

    async def _stop_elsewhere(self, row: RoleRow) -> None:
        """Ask the server that watches it, and where that is dead end the role's process ourselves."""
        self._ledger.ask_to_stop(row.id)
        with anyio.move_on_after(2 * GRACE_S):
            while owner_alive(row.watcher) and self._ledger.role(row.id).state == "running":
                await anyio.sleep(POLL_S)
        if row.owner != row.watcher and owner_alive(row.owner):
            await interrupt_group(int(row.owner.partition(":")[0]), GRACE_S)
        self._settled(self._ledger.role(row.id), "stopped")

    def _settled(self, row: RoleRow, state: RoleState = "crashed") -> RoleRow:
        """The row; a role whose process is dead and whose server never said so gets its end recorded."""
        if row.state == "running" or row.ended_at or row.id in self._live:
            return row
        if state != "running":
            self._end(row, Ended(ending=state, note=row.note))
        return self._ledger.role(row.id)

    def _best(self, row: RoleRow) -> EvaluationRow | None:
        """By the interval's lower end: what is most surely fast, not what was luckiest."""
        rows = self._ledger.evaluations(row.run, row.id)
        whole = [one for one in rows if one.result.status is Status.PASSED and not one.result.partial]
        passed = [one for one in whole if one.result.speedup]
        return max(passed, key=lambda one: one.result.speedup.low if one.result.speedup else 0.0, default=None)

    async def _pause(self, role_id: str, seconds: float) -> None:
        if live := self._live.get(role_id):
            await asyncio.wait({live.task}, timeout=seconds)
            await asyncio.sleep(0)
        else:
            await asyncio.sleep(min(seconds, POLL_S))

    def _forget(self, role_id: str, task: asyncio.Task[None]) -> None:
        del self._live[role_id]
        if not task.cancelled() and (crash := task.exception()):
            log.error("the watch of role %s crashed", role_id, exc_info=crash)
