"""A run in progress: what its history says, who is at work, and the one way to write a decision down."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from mcp_server.schema import HistoryLine, RoleAnswer
from supervisor import budget
from supervisor.budget import Remaining
from supervisor.client import Lab
from supervisor.schema import Evaluation, RunConfig, RunState, TaskFacts
from supervisor.state import best, replay, searched
from toolkits.core.schema import Json, Record

HARNESS_TRIES = 3
"""Of one of the supervisor's own measurements, when it is the lab that fails."""

Watcher = Callable[["Run", Sequence[HistoryLine]], None]
"""Is told what is new; must not decide anything."""


class Run:
    """A run in progress: what is known, and the calls that change it."""

    def __init__(
        self, lab: Lab, name: str, config: RunConfig, facts: TaskFacts, folder: Path, usd: float, watcher: Watcher
    ) -> None:
        self.lab = lab
        self.name = name
        self.config = config
        self.facts = facts
        self.folder = folder
        self.state = RunState()
        self.roles: list[RoleAnswer] = []
        """Of the team at work."""
        self.activity = ""
        self._usd_before = usd
        self._usd: dict[str, float] = {}
        self._rows: list[HistoryLine] = []
        self._watcher = watcher
        self._synced_at = time.monotonic()

    async def load(self) -> None:
        """Read what earlier sessions left; nobody needs to be told of it again."""
        self._add(await self.lab.history(0))

    async def sync(self) -> None:
        """Read what is new in the history."""
        new = await self.lab.history(self.state.last_seq)
        if new:
            self._add(new)
        self._watcher(self, new)

    def _add(self, rows: Sequence[HistoryLine]) -> None:
        self._rows += rows
        self.state = replay(self._rows)
        self._synced_at = time.monotonic()

    async def decide(self, kind: str, body: Record | Json) -> None:
        """Write a decision down; only then may it be acted upon."""
        await self.lab.record(kind, body if isinstance(body, dict) else body.model_dump(mode="json"))
        await self.sync()

    def doing(self, activity: str) -> None:
        self.activity = activity
        self._watcher(self, ())

    @property
    def elapsed_s(self) -> float:
        """Active time up to now."""
        return self.state.active_s + time.monotonic() - self._synced_at

    @property
    def usd(self) -> float:
        """Spent by the run: before this session, and by the roles of this session."""
        return self._usd_before + sum(self._usd.values())

    def heard(self, answer: RoleAnswer) -> None:
        """Keep what is new about a role of the team at work."""
        self.roles = [answer if known.role == answer.role else known for known in self.roles]
        self._usd[answer.role] = answer.usd

    @property
    def left(self) -> Remaining:
        return budget.remaining(self.config, self.state, self.elapsed_s, self.usd)

    @property
    def best(self) -> Evaluation | None:
        return best(searched(self.state))

    def stored(self, solution: str) -> str:
        """Path of the sources that were measured."""
        return str(self.folder.parent.parent / "solutions" / solution)
