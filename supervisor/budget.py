"""What may still be spent. Pure arithmetic; the reserve for verification is taken out before anything else."""

import statistics

from supervisor.schema import RunConfig, RunState
from toolkits.core.schema import Record

VERIFICATIONS = 5
"""Re-measures of a winner from its stored sources."""
FINALISTS = 3
"""Leading candidates that get a second session before one of them is claimed to be the best."""
FEWEST_FOR_FINALS = 20
"""Evaluations of a run from which the finals are worth their share."""
REPORT_S = 5.0
RESERVE_MARGIN = 1.5
"""Re-measures draw their inputs afresh and are timed on a machine that may be busier than before."""


class Remaining(Record):
    """What the search may still use; the reserve is not part of it."""

    evaluations: int
    seconds: float
    usd: float


def reserve_s(config: RunConfig, state: RunState) -> float:
    """Seconds kept for verification and report, from what an evaluation took so far; at most 40 % of the budget."""
    sessions = VERIFICATIONS + finals(config)
    return min(0.4 * config.minutes * 60, sessions * _session_s(state) * RESERVE_MARGIN + REPORT_S)


def finals(config: RunConfig) -> int:
    """How many candidates get a second session; none in a run so small that the search needs every evaluation."""
    return FINALISTS if config.evaluations >= FEWEST_FOR_FINALS else 0


def _session_s(state: RunState) -> float:
    """What one re-measure will take."""
    # The first evaluation starts the judge and times the slowest kernel: it counts only while it is alone.
    took = [e.seconds for e in state.evaluations if e.timed]
    return statistics.median(took[1:] or took or [0.0])


def remaining(config: RunConfig, state: RunState, elapsed_s: float, usd: float) -> Remaining:
    """What is left for searching after `elapsed_s` active seconds and `usd` spent."""
    return Remaining(
        evaluations=config.evaluations - len(state.evaluations) - VERIFICATIONS - finals(config),
        seconds=config.minutes * 60 - elapsed_s - reserve_s(config, state),
        usd=config.usd * (1 - config.reserve) - usd,
    )


def may_compare(config: RunConfig, state: RunState, elapsed_s: float) -> bool:
    """Whether one more second session fits beside the re-measures of a claim."""
    evaluations = config.evaluations - len(state.evaluations) - VERIFICATIONS
    return evaluations > 0 and config.minutes * 60 - elapsed_s >= (VERIFICATIONS + 1) * _session_s(state)


def may_verify(config: RunConfig, state: RunState, elapsed_s: float) -> bool:
    """Whether one more claim may be re-measured: the reserve is for the first, a further one has to fit."""
    if config.evaluations - len(state.evaluations) < VERIFICATIONS:
        return False
    return not state.verifications or config.minutes * 60 - elapsed_s >= VERIFICATIONS * _session_s(state)


def spent_out(left: Remaining) -> str:
    """Which part of the budget is used up; empty while there is some of each."""
    if left.evaluations <= 0:
        return "evaluations"
    if left.seconds <= 0:
        return "time"
    return "usd" if left.usd < 0 else ""


def shares(total: int, roles: int) -> list[int]:
    """`total` split over `roles` as evenly as integers allow."""
    return [total // roles + (position < total % roles) for position in range(roles)]
