"""What calls cost by each clock. Pure functions over Spent; which clock is believed is for timed.py to say."""

import statistics

from toolkits.core.judge.clocks import BLOCKED_FLOOR_NS, Spent

IDLE_SLACK_NS = 50_000
"""CPU time between two calls that is charged to the second one when there is more of it."""


def asking_ns(spent: list[Spent]) -> float:
    """What a request costs beside the function: the judge's clock less the worker's, median."""
    return statistics.median(s.outer_ns - s.cpu_ns for s in spent)


def usual_idle_ns(spent: list[Spent]) -> float:
    return statistics.median(max(each.idle_ns for each in s.requests) for s in spent)


def worked_before_ns(spent: Spent, usual_ns: float) -> float:
    """CPU time before a call that going to sleep does not explain; between plan and run it is counted anyway."""
    excess = spent.requests[0].idle_ns - usual_ns
    return excess if excess > IDLE_SLACK_NS else 0.0


def claimed_ns(spent: Spent) -> float:
    """What the worker's own clock says of plan and run."""
    return float(sum(each.cpu_ns for each in spent.requests))


def seen_ns(spent: Spent, asking_ns: float) -> float:
    """What the judge's clock says of plan and run, and of the time between the two."""
    seen = sum(max(each.outer_ns - asking_ns, 1.0) for each in spent.requests)
    return seen + (spent.idle_ns if spent.plan else 0)


def wall_ns(spent: Spent, asking_ns: float) -> float:
    return sum(each.wall_ns - asking_ns for each in spent.requests)


def blocked_share(spent: Spent) -> float:
    waited = spent.wall_ns - spent.outer_ns - spent.queued_ns
    return waited / spent.wall_ns if waited > BLOCKED_FLOOR_NS else 0.0
