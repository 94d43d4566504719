"""What one tunable alone does: pairs of candidates that differ in nothing else. Pure functions of the evaluations."""

import math
import statistics
from collections.abc import Iterator, Sequence
from itertools import combinations

from supervisor.schema import Evaluation
from toolkits.core.schema import Record

FEWEST_PAIRS = 5
"""That all agree: by chance once in sixteen."""
VISIBLE = 1.05
"""Smaller mean ratios are nothing to act upon."""
SHOWN = 3


class Effect(Record):
    """In every pair of candidates of `variant` that differ only in `tunable`, the value `better` was faster."""

    variant: str
    tunable: str
    better: int
    worse: int
    ratio: float
    """Geometric mean over the pairs."""
    pairs: list[tuple[str, str]]
    """Evaluations, the faster one first."""

    def __str__(self) -> str:
        cited = ", ".join(f"{fast} over {slow}" for fast, slow in self.pairs[:SHOWN])
        more = ", ..." if len(self.pairs) > SHOWN else ""
        return (
            f"{self.variant} with {self.tunable}={self.better} is {self.ratio:.2f}x as fast as with {self.worse}: mean "
            f"of {len(self.pairs)} pairs that differ in nothing else, all of which agree ({cited}{more})."
        )


def effects(variant: str, seen: Sequence[Evaluation]) -> list[Effect]:
    """The largest first."""
    grouped: dict[tuple[str, int, int], list[tuple[Evaluation, Evaluation]]] = {}
    for tunable, less, more in _pairs([e for e in seen if e.timed]):
        key = tunable, less.parameters[tunable], more.parameters[tunable]
        grouped.setdefault(key, []).append((less, more))
    found = [effect for key, pairs in grouped.items() if (effect := _effect(variant, key, pairs))]
    return sorted(found, key=lambda effect: -effect.ratio)


def _pairs(timed: Sequence[Evaluation]) -> Iterator[tuple[str, Evaluation, Evaluation]]:
    """Two candidates that differ in one tunable, the smaller value first."""
    for a, b in combinations(timed, 2):
        differing = [name for name, value in a.parameters.items() if b.parameters.get(name) != value]
        if len(differing) == 1 and a.parameters.keys() == b.parameters.keys():
            less, more = sorted((a, b), key=lambda e: e.parameters[differing[0]])
            yield differing[0], less, more


def _effect(variant: str, key: tuple[str, int, int], pairs: Sequence[tuple[Evaluation, Evaluation]]) -> Effect | None:
    logs = [math.log(_value(more) / _value(less)) for less, more in pairs]
    up = logs[0] > 0
    mean = abs(statistics.fmean(logs))
    if len(pairs) < FEWEST_PAIRS or any((log > 0) != up for log in logs) or mean < math.log(VISIBLE):
        return None
    tunable, less, more = key
    cited = [(b.id, a.id) if up else (a.id, b.id) for a, b in pairs]
    better, worse = (more, less) if up else (less, more)
    return Effect(variant=variant, tunable=tunable, better=better, worse=worse, ratio=math.exp(mean), pairs=cited)


def _value(evaluation: Evaluation) -> float:
    assert evaluation.speedup, "only timed evaluations are paired"
    return evaluation.speedup.value
