"""Caps of a role, of the role it helps and of their run, against what was used. Pure arithmetic: no ledger, no clock.

Of a run's budget a reserve for verification and report is taken out first; without a word in its config that is a tenth
of everything.
"""

from collections.abc import Iterable
from datetime import datetime

from pydantic import Field

from mcp_server.agents.agent import Ended
from toolkits.core.schema import Record

RESERVE = 0.1


class Caps(Record):
    """What may be used; 0 is no cap."""

    usd: float = Field(default=0.0, ge=0)
    tokens: int = Field(default=0, ge=0)
    minutes: float = Field(default=0.0, ge=0)
    evaluations: int = Field(default=0, ge=0)


class RunCaps(Caps, extra="ignore"):
    """The part of a run's frozen config that the lab itself enforces on its roles."""

    reserve: float = Field(default=RESERVE, ge=0, lt=1)
    """Share of each cap that no role gets."""

    def for_roles(self) -> Caps:
        share = 1 - self.reserve
        return Caps(
            usd=self.usd * share,
            tokens=int(self.tokens * share),
            minutes=self.minutes * share,
            evaluations=int(self.evaluations * share),
        )


class Used(Record):
    """What a role with its helpers, or a run, has used so far."""

    usd: float = 0.0
    tokens: int = 0
    minutes: float = 0.0
    evaluations: int = 0


class Account(Record):
    """Caps and use of one party to a role's budget."""

    whose: str
    """As in a sentence: its, its run's."""
    caps: Caps
    used: Used

    @property
    def usd_left(self) -> float | None:
        """None: no cap."""
        return max(0.0, self.caps.usd - self.used.usd) if self.caps.usd else None

    def overdrawn(self) -> Ended | None:
        """How the role has to end now; evaluations are another matter, for they end by being refused."""
        caps, used = self.caps, self.used
        if caps.minutes and used.minutes >= caps.minutes:
            return _ended("time", f"{self.whose} {caps.minutes:g} minutes are over")
        if caps.usd and used.usd >= caps.usd:
            return _ended("budget", f"{self.whose} {caps.usd:.2f} USD are spent: {used.usd:.4f}")
        if caps.tokens and used.tokens >= caps.tokens:
            return _ended("budget", f"{self.whose} {caps.tokens} tokens are used: {used.tokens}")
        return None

    def evaluations_used_up(self) -> bool:
        return bool(self.caps.evaluations) and self.used.evaluations >= self.caps.evaluations


def covered_minutes(intervals: Iterable[tuple[datetime, datetime]]) -> float:
    """Minutes in which at least one of the intervals was open."""
    total, end = 0.0, None
    for start, stop in sorted(intervals):
        begin = start if end is None or start > end else end
        total += max(0.0, (stop - begin).total_seconds())
        end = stop if end is None or stop > end else end
    return total / 60


def _ended(ending: str, note: str) -> Ended:
    return Ended.model_validate({"ending": ending, "note": note, "evidence": [note]})
