"""One role from its first attempt to its recorded end: each attempt a process, between them the policy's decision."""

import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import anyio

from mcp_server import endings, role_prompts, worktrees
from mcp_server.agents.agent import Ended, RoleBrief, get_agent
from mcp_server.agents.specs import AgentSpec
from mcp_server.charter import parse
from mcp_server.endings import Decision, Failure
from mcp_server.keys import for_agent
from mcp_server.ledger import RoleRow
from mcp_server.prices import Prices
from mcp_server.role_means import Connection, Means, environment_of
from mcp_server.role_meter import Meter
from mcp_server.role_process import TICK_S, RoleProcess
from mcp_server.stalls import Clocks
from mcp_server.workspace import worktree_of
from toolkits.core.errors import InvalidInput
from toolkits.core.schema import Json

COMMIT_EVERY_S = 0.5
LOST = "the lab failed while it watched the role: the server's log has the traceback"


class RoleWork:
    """The attempts at a role, one after the other."""

    def __init__(
        self, means: Means, row: RoleRow, agents: Sequence[AgentSpec], token: str, connection: Connection
    ) -> None:
        self.row = row
        self.started = anyio.Event()
        """Set when the first process runs, or when there will be none."""
        self.refusal: InvalidInput | None = None
        """Why the only agent could not even begin."""
        self.meter: Meter | None = None
        self._means = means
        self._ledger = means.ledger
        self._prices = Prices(means.workspace.root)
        self._agents = agents
        self._token = token
        self._connection = connection
        self._charter = parse((row.folder / "charter.md").read_text(encoding="utf-8"))
        self._process: RoleProcess | None = None
        self._why: Ended | None = None
        self._began = time.monotonic()
        self._in_a_row = 0
        self._reminded = False
        self._committed = 0
        self._unusable = False

    def stop(self, why: Ended) -> None:
        """Ask for the end of the role; the first reason counts."""
        self._why = self._why or why
        if self._process:
            self._process.stop(self._why)

    async def run(self) -> Ended:
        """All attempts; gives how the role ended, which is for the caller to record."""
        names = [str(agent) for agent in self._agents]
        decision = endings.first(names, self._failures(), self._means.patience)
        ended, prompt = Ended(ending="crashed", note=decision.why), ""
        while decision.agent is not None:
            number, ended = await self._attempt(decision, prompt)
            decision, prompt = self._decided(number, ended, decision.agent)
            self._tell(number, ended, decision)
            if decision.agent is None and decision.why:
                ended = ended.model_copy(update={"note": f"{ended.note} ({decision.why})"})
            if over := await self._pause(ended, decision):
                return over
        return ended

    # --- one attempt --------------------------------------------------------------------------------------------

    async def _attempt(self, decision: Decision, prompt: str) -> tuple[int, Ended]:
        assert decision.agent is not None
        spec, self._unusable = self._agents[decision.agent], False
        session = self._session(str(spec)) if decision.resume else ""
        number = self._ledger.add_attempt(self.row, str(spec), session)
        clocks = Clocks(self._charter.quiet_minutes * 60, self._charter.idle_minutes * 60, time.monotonic())
        meter = self.meter = Meter(self._ledger, self.row, number, self._prices, clocks, self._began)
        before = self._ledger.credits(self.row.run, self.row.id)
        try:
            ended = await self._played(spec, session, prompt, meter)
        except InvalidInput as error:
            self.refusal, self._unusable = None if self.started.is_set() else error, True
            ended = Ended(ending="crashed", note=str(error))
        except OSError as error:
            self._unusable = True
            ended = Ended(ending="crashed", note=f"its process could not be started: {error}")
        await self._commit_new()
        await worktrees.committed(worktree_of(self.row.folder), f"attempt of {spec} ended: {ended.ending}")
        progressed = self._ledger.credits(self.row.run, self.row.id) > before
        self._in_a_row = 1 if progressed else self._in_a_row + 1
        self._ledger.end_attempt(self.row.id, number, ended.ending, ended.note)
        return number, ended

    async def _played(self, spec: AgentSpec, session: str, prompt: str, meter: Meter) -> Ended:
        agent = get_agent(spec.name)
        brief = self._brief(spec, session, prompt, for_agent(agent.keys, self._means.keys, os.environ))
        brief.home.mkdir(exist_ok=True)
        attempt = agent.start(brief)
        environment = environment_of(brief) | attempt.environment
        self._process = RoleProcess(attempt, environment, self.row.folder, self._means.secrets, meter)
        if self._why:
            return self._why
        try:
            ended = await self._run_and_commit(self._process)
        finally:
            # Between two processes the role is the server's own.
            self._ledger.set_role(self.row.id, "running", pid=os.getpid())
            self._process = None
            meter.write_seconds()
        return ended

    async def _run_and_commit(self, process: RoleProcess) -> Ended:
        ended = Ended(ending="crashed", note=LOST)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._commit_evaluations)
                ended = await process.run(self._started)
                tasks.cancel_scope.cancel()
        except* (OSError, InvalidInput) as problems:
            raise problems.exceptions[0] from None
        return ended

    def _started(self, pid: int) -> None:
        self._ledger.set_role(self.row.id, "running", pid=pid)
        self.started.set()

    def _brief(self, spec: AgentSpec, session: str, prompt: str, keys: dict[str, str]) -> RoleBrief:
        left = [account.usd_left for account in self._ledger.accounts(self.row)]
        return RoleBrief(
            role=self.row.id,
            run=self.row.run,
            task=self._charter.task,
            folder=self.row.folder,
            charter=self.row.folder / "charter.md",
            url=self._connection.url,
            root=self._connection.root,
            token=self._token,
            prompt=prompt if session and prompt else self._whole_prompt(prompt),
            model=spec.model,
            session=session,
            usd_left=min((usd for usd in left if usd is not None), default=0.0),
            keys=keys,
        )

    def _whole_prompt(self, more: str) -> str:
        start = self._means.workspace.task(self._charter.task).start
        told = role_prompts.beginning(self._charter, self.row.name, self.row.caps, start)
        return f"{told}\n{more}" if more else told

    def _session(self, agent: str) -> str:
        own = [one.session for one in self._ledger.attempts(self.row.id) if one.agent == agent and one.session]
        return own[-1] if own else ""

    # --- what follows -------------------------------------------------------------------------------------------

    def _decided(self, number: int, ended: Ended, agent: int) -> tuple[Decision, str]:
        """What is next, and what the agent is told then."""
        if ended.ending == "done" and not self._reminded and (missing := self._missing()):
            self._reminded = True
            return Decision(agent=agent, resume=True, why=f"{missing[0]} is not read"), role_prompts.unread(missing)
        names = [str(one) for one in self._agents]
        patience = self._means.patience
        in_a_row = len(patience.backoff_s) + 1 if self._unusable else self._in_a_row
        decision = endings.after(ended, agent, names, in_a_row, self._failures(), patience, _until_s(ended.quota_until))
        if decision.agent != agent:
            self._in_a_row = 0
        return decision, role_prompts.going_on(ended.note)

    def _missing(self) -> list[str]:
        seen = set(self._ledger.reads(self.row.run, self.row.id))
        return [what for what in self._charter.read if what not in seen]

    def _failures(self) -> list[Failure]:
        now = datetime.now(UTC)
        since = (now - timedelta(seconds=self._means.patience.circuit_s)).isoformat()
        rows = self._ledger.ended_attempts(self.row.run, since)
        ages = [(row, (now - datetime.fromisoformat(row.ended_at)).total_seconds()) for row in rows]
        return [Failure.model_validate({"agent": r.agent, "ending": r.ending, "age_s": age}) for r, age in ages]

    def _tell(self, number: int, ended: Ended, decision: Decision) -> None:
        meter = self.meter
        spent: Json = {}
        if meter:
            spent = {"usd": round(meter.usd, 6), "usage": meter.usage.model_dump(), "unpriced": meter.unpriced}
        body = {"attempt": number, **ended.model_dump(mode="json"), "next": decision.model_dump(mode="json")}
        self._ledger.append(self.row.run, "role_attempt", body | spent, self.row.id)

    async def _pause(self, ended: Ended, decision: Decision) -> Ended | None:
        """Wait as decided; what ends the role meanwhile ends the pause."""
        until = time.monotonic() + decision.wait_s
        while decision.agent is not None:
            over = self._why or (self.meter.overdrawn() if self.meter else None)
            left = until - time.monotonic()
            if over or left <= 0:
                return over
            at = (datetime.now(UTC) + timedelta(seconds=left)).isoformat(timespec="seconds")
            self._ledger.set_role(self.row.id, "running", f"{decision.why}, at {at}: {ended.note}")
            await anyio.sleep(min(left, TICK_S * 5))
        return None

    # --- commits ------------------------------------------------------------------------------------------------

    async def _commit_evaluations(self) -> None:
        while True:
            await anyio.sleep(COMMIT_EVERY_S)
            with anyio.CancelScope(shield=True):
                await self._commit_new()

    async def _commit_new(self) -> None:
        """A commit for every evaluation since the last one."""
        for id, status in self._ledger.evaluations_after(self.row.run, self.row.id, self._committed):
            self._committed += 1
            await worktrees.committed(worktree_of(self.row.folder), f"evaluation {id}: {status}")


def _until_s(moment: str) -> float | None:
    if not moment:
        return None
    try:
        at = datetime.fromisoformat(moment)
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max(0.0, (at - datetime.now(UTC)).total_seconds())
