"""The cases of one task that the judge has ready, and their renewal: fresh secrets without making a candidate wait.

Cases never leave the judge. A warm evaluation takes ready ones; while the judge is idle, used ones are redrawn. One
case serves at most MAX_USES evaluations, and a verification asks for all of them fresh.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import torch

from toolkits.core.judge.compare import bad_reference
from toolkits.core.judge.inputs import Case, InvalidReference, Reference, draw
from toolkits.core.schema import Task, Workload

MAX_USES, MAX_SPECIAL_USES = 20, 5
HIDDEN = 3
"""Correctness rounds at sizes that the judge draws."""
SMALL = 1 << 18
"""Elements of inputs and outputs up to which a case is drawn while a candidate waits."""
_RANDOM = random.SystemRandom()


@dataclass
class _Entry:
    """What a case is drawn for, asked anew at each renewal: sizes and distribution."""

    what: Callable[[], tuple[dict[str, int], str]]
    case: Case | None = None
    uses: int = 0


class Cases:
    """Correctness rounds and timed cases of one task."""

    def __init__(self, task: Task, reference: Reference) -> None:
        self._task, self._reference = task, reference
        names = list(task.distributions)
        self._rounds = [_Entry(_fixed(axes, name)) for axes in task.correctness for name in names]
        if any(axis.drawn for axis in task.axes.values()):
            self._rounds += [_Entry(self._hidden) for _ in range(HIDDEN)]
        self._timed = {w.uuid: _Entry(_fixed(w.axes, w.distribution or names[0])) for w in task.workloads}
        self._others = names[1:] or names
        self._special = {w.uuid: _Entry(self._any_other(w.axes)) for w in task.workloads}

    def rounds(self) -> list[Case]:
        """Every distribution at every correctness size, then sizes that nobody knows beforehand."""
        return [self._take(entry) for entry in self._rounds]

    def timed(self, uuid: str) -> Case:
        """One of the kind that is timed."""
        return self._take(self._timed[uuid])

    def specials(self, workload: Workload, *, every: bool) -> Iterator[Case]:
        """Cases of other distributions at a timed size: who is right for easy content only is wrong.

        One of a random distribution is always ready; the others where they are small, or `every` one is wanted.
        """
        first = self._take(self._special[workload.uuid], MAX_SPECIAL_USES)
        yield first
        if every or _elements(first) <= SMALL:
            for name in self._others:
                if name != first.distribution:
                    yield self._drawn(workload.axes, name)

    def _hidden(self) -> tuple[dict[str, int], str]:
        axes = dict(_RANDOM.choice(self._task.correctness))
        for name, axis in self._task.axes.items():
            if axis.drawn:
                axes[name] = _RANDOM.randint(*axis.drawn)
        return axes, _RANDOM.choice(list(self._task.distributions))

    def _any_other(self, axes: dict[str, int]) -> Callable[[], tuple[dict[str, int], str]]:
        return lambda: (axes, _RANDOM.choice(self._others))

    def _take(self, entry: _Entry, most: int = MAX_USES) -> Case:
        if entry.case is None or entry.uses >= most:
            self._renew(entry)
        entry.uses += 1
        assert entry.case
        return entry.case

    def _renew(self, entry: _Entry) -> None:
        entry.case, entry.uses = self._drawn(*entry.what()), 0

    def _drawn(self, axes: dict[str, int], distribution: str) -> Case:
        case = draw(self._task, self._reference, axes, distribution)
        if problem := bad_reference(self._task, case):
            raise InvalidReference(problem)
        return case

    def _entries(self) -> list[_Entry]:
        return [*self._rounds, *self._timed.values(), *self._special.values()]

    def renew_one(self) -> bool:
        """Redraw the most used case; False when none has been used. One that fails is drawn when it is needed."""
        entry = max(self._entries(), key=lambda e: e.uses)
        if entry.uses == 0:
            return False
        entry.case, entry.uses = None, 0
        with suppress(InvalidReference):
            self._renew(entry)
        return True

    def renew_all(self) -> None:
        for entry in self._entries():
            self._renew(entry)


def _elements(case: Case) -> int:
    return sum(v.numel() for v in [*case.inputs.values(), *case.expected.values()] if isinstance(v, torch.Tensor))


def _fixed(axes: dict[str, int], distribution: str) -> Callable[[], tuple[dict[str, int], str]]:
    return lambda: (axes, distribution)
