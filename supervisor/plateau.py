"""Has progress stopped, and of which kind? Pure functions of a generation's evaluations; no clock, no I/O."""

import math
from collections.abc import Sequence

from supervisor.schema import Evaluation, Plateau, PlateauKind
from toolkits.core.schema import Interval, Record, Status

FAILURES_IN_A_ROW = 5
HARNESS_ERRORS_IN_A_ROW = 3
STALL_SHARE = 0.25
"""Of the time budget: this long without a verified gain is a stall even when evaluations are slow."""
WIDE = 0.15
"""Width of an interval, relative, from which a measurement cannot guide a search."""
STILL_RISING = 0.1
"""Of the noise: a rise that is no gain yet, and still a reason to wait."""


class Rule(Record):
    """When a stretch without gain is a plateau."""

    window: int
    """Evaluations."""
    stall_s: float = math.inf
    """Seconds; counts once a third of the window has been seen."""


def rule(evaluations: int, minutes: float, roles: int = 1) -> Rule:
    """The default, scaled to the budget; parallel roles share a window that is wider by half for each."""
    window = max(5, min(8, evaluations // 7))
    return Rule(window=window + (roles - 1) * window // 2, stall_s=STALL_SHARE * minutes * 60)


def verified_gain(new: Interval, old: Interval) -> bool:
    """Whether `new` is above `old` by more than both intervals together explain."""
    return _rise(new, old) > 1


def _rise(new: Interval, old: Interval) -> float:
    """How far `new` is above `old`, in units of what both intervals together explain."""
    noise = math.hypot(math.log(new.value / new.low), math.log(old.high / old.value))
    rise = math.log(new.value / old.value)
    return rise / noise if noise else math.copysign(math.inf, rise) if rise else 0.0


def detect(
    evaluations: Sequence[Evaluation], bottlenecks: Sequence[str], rule: Rule, since_start_s: float
) -> Plateau | None:
    """The plateau that the generation's evaluations show, if any. `since_start_s`: age of the generation."""
    return (
        _infrastructure(evaluations)
        or _correctness(evaluations)
        or _stall(evaluations, bottlenecks, rule, since_start_s)
    )


def _infrastructure(evaluations: Sequence[Evaluation]) -> Plateau | None:
    last = evaluations[-HARNESS_ERRORS_IN_A_ROW:]
    if len(last) < HARNESS_ERRORS_IN_A_ROW or any(e.status != Status.HARNESS_ERROR for e in last):
        return None
    return _plateau("infrastructure", f"the lab itself failed {len(last)} times in a row ({last[-1].cause})", last)


def _correctness(evaluations: Sequence[Evaluation]) -> Plateau | None:
    last = evaluations[-FAILURES_IN_A_ROW:]
    if len(last) < FAILURES_IN_A_ROW or not all(e.failed for e in last):
        return None
    seen = ", ".join(sorted({f"{e.status} {e.cause}".strip() for e in last}))
    return _plateau("correctness", f"{len(last)} candidates in a row failed ({seen})", last)


def _stall(
    evaluations: Sequence[Evaluation], bottlenecks: Sequence[str], rule: Rule, since_start_s: float
) -> Plateau | None:
    gain = last_gain(evaluations)
    since = evaluations[gain + 1 :] if gain is not None else evaluations
    quiet_s = since_start_s - (evaluations[gain].at_s if gain is not None else 0.0)
    long_enough = len(since) >= rule.window or (quiet_s >= rule.stall_s and len(since) >= max(2, rule.window // 3))
    if not long_enough or climbing(evaluations, rule.window):
        return None
    kind, why = _kind(since, bottlenecks)
    return _plateau(kind, f"no gain outside the noise for {len(since)} evaluations; {why}", since)


def last_gain(evaluations: Sequence[Evaluation]) -> int | None:
    """Index of the last evaluation that was verifiably better than the best verified before it; the first counts.

    Small steps that each drown in the noise add up against the same anchor, so slow progress is still seen.
    """
    anchor, index = None, None
    for position, evaluation in enumerate(evaluations):
        speedup = evaluation.speedup if evaluation.timed else None
        if speedup and (anchor is None or verified_gain(speedup, anchor)):
            anchor, index = speedup, position
    return index


def climbing(evaluations: Sequence[Evaluation], window: int) -> bool:
    """Whether the best of the last half window is above the best before it by a visible part of the noise.

    Weaker than a verified gain on purpose: it only asks for patience, and at most for half a window each time.
    """
    recent = max(2, window // 2)
    before, after = _top(evaluations[:-recent]), _top(evaluations[-recent:])
    return before is not None and after is not None and _rise(after, before) > STILL_RISING


def _top(evaluations: Sequence[Evaluation]) -> Interval | None:
    timed = [e.speedup for e in evaluations if e.timed and e.speedup]
    return max(timed, key=lambda speedup: speedup.value, default=None)


def _kind(since: Sequence[Evaluation], bottlenecks: Sequence[str]) -> tuple[PlateauKind, str]:
    timed = [e for e in since if e.timed]
    if timed and _unmeasurable(timed):
        return "measurement", "the measurements are too noisy to tell the candidates apart"
    if len(bottlenecks) >= 2 and bottlenecks[-1] == bottlenecks[-2] != "unknown":
        return "profile", f"two profiles in a row name the same bottleneck ({bottlenecks[-1]})"
    near = _near_duplicates(since)
    if near * 2 >= len(since):
        return "ideas", f"{near} of them differ in at most one parameter from one before"
    return "ideas", "they differ widely, and none is better"


def _unmeasurable(timed: Sequence[Evaluation]) -> bool:
    """Whether most intervals are wide and hold the best of them: none can be told from it, better or worse."""
    speedups = [e.speedup for e in timed if e.speedup]
    best = max(speedup.value for speedup in speedups)
    blurred = [s for s in speedups if s.low <= best <= s.high and s.high / s.low - 1 > WIDE]
    return len(speedups) > 2 and len(blurred) * 2 > len(speedups)


def _near_duplicates(evaluations: Sequence[Evaluation]) -> int:
    """Candidates that differ from an earlier one of the same variant in at most one parameter."""
    return sum(
        any(e.variant == f.variant and _distance(e.parameters, f.parameters) <= 1 for f in evaluations[:position])
        for position, e in enumerate(evaluations)
        if e.parameters
    )


def _distance(a: dict[str, int], b: dict[str, int]) -> int:
    return sum(a.get(name) != b.get(name) for name in a.keys() | b.keys())


def _plateau(kind: PlateauKind, reason: str, evidence: Sequence[Evaluation]) -> Plateau:
    return Plateau(kind=kind, reason=reason, evidence=[e.id for e in evidence][-8:])
