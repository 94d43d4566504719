"""What follows the end of an attempt: another one, another agent, a pause, or the end of the role. Pure.

An agent of a run that failed too often in a short time is left alone by all roles of the run: its circuit is open.
"""

from collections.abc import Sequence

from mcp_server.agents.agent import Ended, Ending
from toolkits.core.schema import Record

FINAL: tuple[Ending, ...] = ("done", "budget", "time", "stopped")
"""The role has ended with the attempt."""
TRANSIENT: tuple[Ending, ...] = ("api_error", "crashed", "tools_missing", "stalled")
"""May be otherwise the next time, with the same agent."""


class Patience(Record):
    """How long failures are borne."""

    backoff_s: tuple[float, ...] = (5.0, 30.0, 120.0)
    """Before each retry with the same agent; as many failures in a row are borne."""
    quota_s: float = 600.0
    """Pause for a quota that does not say when it ends."""
    quota_longest_s: float = 6 * 3600.0
    """A quota that lasts longer ends the role."""
    quota_pauses: int = 6
    circuit_failures: int = 6
    """Of one agent in a run, by all roles together, that open its circuit."""
    circuit_s: float = 300.0
    """The time within which they count."""


class Failure(Record):
    """One failed attempt of this role, or of another one of its run."""

    agent: str
    ending: Ending
    age_s: float
    """Since it ended."""


class Decision(Record):
    """What to do next."""

    agent: int | None
    """Which of the role's agents plays next; None: the role ends."""
    wait_s: float = 0.0
    """Before it starts."""
    resume: bool = False
    """With its own session; else a new one."""
    why: str = ""


def first(agents: Sequence[str], failures: Sequence[Failure], patience: Patience) -> Decision:
    """Which agent begins: the first one whose circuit is closed."""
    for number, agent in enumerate(agents):
        if not _open(agent, failures, patience):
            return Decision(agent=number, why="starts")
    return Decision(agent=None, why=_storm(agents[-1], patience))


def after(
    ended: Ended,
    agent: int,
    agents: Sequence[str],
    in_a_row: int,
    failures: Sequence[Failure],
    patience: Patience,
    quota_s: float | None = None,
) -> Decision:
    """`in_a_row` counts the failures of this agent in this role without progress between, this one included.

    `failures` are those of the whole run; `quota_s` is the time until a quota ends, where that is known.
    """
    if ended.ending in FINAL:
        return Decision(agent=None)
    closed = not _open(agents[agent], failures, patience)
    if ended.ending in TRANSIENT and closed and in_a_row <= len(patience.backoff_s):
        wait_s = patience.backoff_s[in_a_row - 1]
        return Decision(agent=agent, wait_s=wait_s, resume=True, why=f"retry {in_a_row} after {ended.ending}")
    if other := _other(agent, agents, failures, patience):
        return Decision(agent=other, why=f"fail over from {agents[agent]} after {ended.ending}")
    if ended.ending == "quota":
        return _paused(agent, in_a_row, patience, quota_s)
    return Decision(agent=None, why="" if closed else _storm(agents[agent], patience))


def _other(agent: int, agents: Sequence[str], failures: Sequence[Failure], patience: Patience) -> int | None:
    """The next agent in order of preference; none is gone back to."""
    later = range(agent + 1, len(agents))
    return next((number for number in later if not _open(agents[number], failures, patience)), None)


def _paused(agent: int, in_a_row: int, patience: Patience, quota_s: float | None) -> Decision:
    wait_s = patience.quota_s if quota_s is None else quota_s
    if wait_s > patience.quota_longest_s or in_a_row > patience.quota_pauses:
        return Decision(agent=None, why=f"a pause of {wait_s / 3600:.1f} h is too long" if quota_s else "")
    return Decision(agent=agent, wait_s=wait_s, resume=True, why="pause until the quota ends")


def _open(agent: str, failures: Sequence[Failure], patience: Patience) -> bool:
    recent = [one for one in failures if one.agent == agent and one.age_s <= patience.circuit_s]
    return sum(one.ending in TRANSIENT for one in recent) >= patience.circuit_failures


def _storm(agent: str, patience: Patience) -> str:
    return f"{agent} failed {patience.circuit_failures} times within {patience.circuit_s:g} s in this run: left alone"
