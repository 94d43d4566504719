"""Which configuration to measure next: TPE over (variant, its tunables). No I/O and no server.

One study holds all variants; each variant's tunables are a sub-space of their own (Optuna's `group`). A tunable is
sampled by the index of its value, so that neighbouring tile sizes are neighbours whatever their spacing.
"""

import math
import random
import warnings
from collections import deque
from collections.abc import Iterator, Mapping, Sequence

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, IntDistribution
from optuna.exceptions import ExperimentalWarning
from optuna.trial import TrialState, create_trial

from toolkits.core.schema import Record

Space = Mapping[str, Mapping[str, Sequence[int]]]
"""Variant -> tunable -> its values, ascending."""
VARIANT = "variant"
DRAWS = 8
"""Proposals of the sampler that may be known already before the search steps to a neighbour itself."""
FEWEST_STARTUP_TRIALS, MOST_STARTUP_TRIALS = 3, 10


class Point(Record):
    """One configuration: a variant and the value of each of its tunables."""

    variant: str
    parameters: dict[str, int]

    @property
    def key(self) -> tuple[str, frozenset[tuple[str, int]]]:
        return self.variant, frozenset(self.parameters.items())

    def __str__(self) -> str:
        return f"{self.variant} {' '.join(f'{name}={value}' for name, value in self.parameters.items())}".strip()


class _Known(Record):
    point: Point
    speedup: float | None


class Search:
    """Proposes each point of the space at most once, good regions first."""

    def __init__(self, space: Space, seed: int, first: Sequence[Point] = ()) -> None:
        """`first` is proposed before any sampling."""
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._space = space
        self._first = deque(first)
        self._known: dict[object, _Known] = {}
        self.size = sum(math.prod(map(len, tunables.values())) for tunables in space.values())
        self._seed = seed
        self._trials: list[optuna.trial.FrozenTrial] = []

    @property
    def measured(self) -> int:
        """Points of the space that are known."""
        return len(self._known)

    def tell(self, point: Point, speedup: float | None) -> bool:
        """What measuring `point` gave; None: it failed, which TPE learns to avoid. True if that was new here."""
        if not self._contains(point) or point.key in self._known:
            return False
        self._known[point.key] = _Known(point=point, speedup=speedup)
        self._trials.append(
            create_trial(
                state=TrialState.PRUNED if speedup is None else TrialState.COMPLETE,
                value=None if speedup is None else math.log(speedup),
                params=self._indices(point),
                distributions=self._distributions(point.variant),
            )
        )
        return True

    def next(self) -> Point | None:
        """A point not told yet; None when there is none left."""
        while self._first:
            point = self._first.popleft()
            if self._contains(point) and point.key not in self._known:
                return point
        if self.measured >= self.size:
            return None
        fresh = (point for point in self._proposals() if point.key not in self._known)
        return next(fresh, None) or self._nearest_unknown()

    def _proposals(self) -> Iterator[Point]:
        # A study of its own each time: proposals that are dropped would slow down and blur one that is kept.
        seed = random.Random(f"{self._seed} {self.measured}").getrandbits(32)
        study = optuna.create_study(direction="maximize", sampler=_sampler(self.size, seed))
        study.add_trials(self._trials)
        for _ in range(DRAWS):
            trial = study.ask()
            variant = trial.suggest_categorical(VARIANT, list(self._space))
            parameters = {
                name: values[trial.suggest_int(f"{variant}.{name}", 0, len(values) - 1)]
                for name, values in self._space[variant].items()
            }
            study.tell(trial, state=TrialState.FAIL)
            yield Point(variant=variant, parameters=parameters)

    def _nearest_unknown(self) -> Point:
        """Where the sampler sees nothing new: around the best of what is known, then anywhere."""
        ranked = sorted(self._known.values(), key=lambda known: -(known.speedup or 0.0))
        for start in (*(known.point for known in ranked), *map(self._corner, self._space)):
            for point in self._outward(start):
                if point.key not in self._known:
                    return point
        raise AssertionError("the space is exhausted: `next` asks only when it is not")

    def _outward(self, start: Point) -> Iterator[Point]:
        """Every point of the start's variant, by growing distance in value steps."""
        queue, seen = deque([start]), {start.key}
        while queue:
            point = queue.popleft()
            yield point
            for neighbour in self._neighbours(point):
                if neighbour.key not in seen:
                    seen.add(neighbour.key)
                    queue.append(neighbour)

    def _neighbours(self, point: Point) -> Iterator[Point]:
        for name, values in self._space[point.variant].items():
            here = values.index(point.parameters[name])
            for there in (here - 1, here + 1):
                if 0 <= there < len(values):
                    yield point.model_copy(update={"parameters": point.parameters | {name: values[there]}})

    def _corner(self, variant: str) -> Point:
        return Point(variant=variant, parameters={name: values[0] for name, values in self._space[variant].items()})

    def _contains(self, point: Point) -> bool:
        tunables = self._space.get(point.variant)
        return (
            tunables is not None
            and tunables.keys() == point.parameters.keys()
            and all(point.parameters[name] in values for name, values in tunables.items())
        )

    def _indices(self, point: Point) -> dict[str, str | int]:
        tunables = self._space[point.variant]
        indices = {f"{point.variant}.{name}": tunables[name].index(v) for name, v in point.parameters.items()}
        return {VARIANT: point.variant, **indices}

    def _distributions(self, variant: str) -> dict[str, BaseDistribution]:
        tunables = self._space[variant].items()
        ranges = {f"{variant}.{name}": IntDistribution(0, len(values) - 1) for name, values in tunables}
        return {VARIANT: CategoricalDistribution(list(self._space)), **ranges}


def _sampler(size: int, seed: int) -> optuna.samplers.TPESampler:
    startup = min(MOST_STARTUP_TRIALS, max(FEWEST_STARTUP_TRIALS, math.isqrt(size)))
    with warnings.catch_warnings():
        # `multivariate` and `group` have been marked experimental since Optuna 2 and are what conditional spaces need.
        warnings.simplefilter("ignore", ExperimentalWarning)
        return optuna.samplers.TPESampler(seed=seed, n_startup_trials=startup, multivariate=True, group=True)
