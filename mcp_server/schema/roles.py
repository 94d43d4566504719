"""What a caller is told of a role."""

from typing import Literal

from toolkits.core.schema import Interval, Record

Ending = Literal[
    "done",
    "budget",
    "time",
    "stopped",
    "refused",
    "quota",
    "auth",
    "api_error",
    "tools_missing",
    "stalled",
    "crashed",
]
"""How a role ends, and each attempt at it. `refused`: the model declined; `tools_missing`: the lab was not there."""
RoleState = Literal["running", Ending]
"""`running` also between two attempts."""


class RoleAnswer(Record):
    role: str
    """Id for wait_role and stop_role."""
    name: str
    agent: str
    """Which agent plays it, or did last: `name` or `name:model`."""
    state: RoleState
    evaluations: int
    """Evaluations credited to the role and its helpers by their tokens."""
    best: Interval | None = None
    """Its best verified speedup."""
    best_evaluation: str = ""
    usd: float = 0.0
    """Spent, with its helpers; tokens and seconds likewise."""
    tokens: int = 0
    seconds: float = 0.0
    attempts: int = 0
    """Processes that were started for it."""
    parent: str = ""
    """Id of the role that it helps."""
    folder: str = ""
    note: str = ""
    """Why it ended, what it waits for, or what it said last."""
