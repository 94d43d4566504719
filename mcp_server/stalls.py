"""Whether a role has stalled, by two clocks: one for its output, one for what the lab credits to its token. Pure."""

from dataclasses import dataclass

from mcp_server.agents.agent import Ended


@dataclass
class Clocks:
    """Times are seconds of any monotonic clock; a limit of 0 is none."""

    quiet_s: float
    """Without a line of output."""
    idle_s: float
    """Without anything credited: a job, a result, something read for the first time, a note, a lesson."""
    now: float
    heard_at: float = 0.0
    credited_at: float = 0.0
    credits: int = -1

    def __post_init__(self) -> None:
        self.heard_at = self.credited_at = self.now

    def heard(self, now: float) -> None:
        self.heard_at = now

    def credited(self, now: float, credits: int) -> None:
        """`credits` counts all that was ever credited."""
        if credits != self.credits:
            self.credits, self.credited_at = credits, now

    def excused(self, now: float) -> None:
        """It has a job in the queue or at work, or a helper: waiting is all that it can do."""
        self.heard_at = self.credited_at = now

    def verdict(self, now: float) -> Ended | None:
        """How a stalled role ends; None while it has not stalled."""
        if self.quiet_s and now - self.heard_at >= self.quiet_s:
            return _stalled(f"no output for {_minutes(self.quiet_s)}")
        if self.idle_s and now - self.credited_at >= self.idle_s:
            return _stalled(f"no job, result, note or reading credited to it for {_minutes(self.idle_s)}")
        return None


def _stalled(why: str) -> Ended:
    return Ended(ending="stalled", note=f"{why}, and none of its jobs is at work", evidence=[why])


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.3g} minutes"
