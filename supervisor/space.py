"""Search spaces of tunables: their size, the neighbourhood of a point, the part hardly tried. Pure functions."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from supervisor.schema import Evaluation
from toolkits.core.schema import Tunable

Values = dict[str, list[int]]
Tunables = Mapping[str, Tunable]


def whole(tunables: Tunables) -> Values:
    return {name: list(tunable.values) for name, tunable in tunables.items()}


def size(values: Values) -> int:
    return math.prod(len(choices) for choices in values.values())


def untried(values: Values, seen: Sequence[Evaluation]) -> int:
    """Points of `values` that no evaluation has covered."""
    points = {tuple(sorted(e.parameters.items())) for e in seen if _inside(values, e.parameters)}
    return size(values) - len(points)


def around(tunables: Tunables, center: Mapping[str, int]) -> Values:
    """The value of each tunable at `center` and its neighbours on both sides."""
    return {
        name: _neighbours(sorted(tunable.values), center.get(name, tunable.default))
        for name, tunable in tunables.items()
    }


def rare(tunables: Tunables, seen: Sequence[Evaluation], keep: Mapping[str, int]) -> Values:
    """Of each tunable the half of the values that was tried least, and the value of `keep`."""
    return {name: _rare_values(name, tunable, seen, keep) for name, tunable in tunables.items()}


def only_failed(seen: Sequence[Evaluation]) -> dict[str, set[int]]:
    """Values that occur in failures and in no candidate that passed."""
    failed = _used([e for e in seen if e.failed])
    passed = _used([e for e in seen if e.timed])
    return {name: bad for name, values in failed.items() if (bad := values - passed.get(name, set()))}


def without(tunables: Tunables, bad: Mapping[str, set[int]]) -> Values:
    """The whole space less the values of `bad`; a tunable that would lose all keeps its values."""
    kept = {name: [v for v in tunable.values if v not in bad.get(name, set())] for name, tunable in tunables.items()}
    return {name: values or list(tunables[name].values) for name, values in kept.items()}


def _inside(values: Values, point: Mapping[str, int]) -> bool:
    return point.keys() == values.keys() and all(value in values[name] for name, value in point.items())


def _neighbours(values: list[int], center: int) -> list[int]:
    index = values.index(center)
    return values[max(0, index - 1) : index + 2]


def _rare_values(name: str, tunable: Tunable, seen: Sequence[Evaluation], keep: Mapping[str, int]) -> list[int]:
    counts = Counter(e.parameters.get(name) for e in seen)
    by_use = sorted(tunable.values, key=lambda value: counts[value])
    chosen = {*by_use[: math.ceil(len(by_use) / 2)], keep.get(name, tunable.default)}
    return [value for value in tunable.values if value in chosen]


def _used(evaluations: Sequence[Evaluation]) -> dict[str, set[int]]:
    used: dict[str, set[int]] = {}
    for evaluation in evaluations:
        for name, value in evaluation.parameters.items():
            used.setdefault(name, set()).add(value)
    return used
