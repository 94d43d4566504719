"""The cases of one task that the judge has ready, and their renewal: fresh secrets without making a candidate wait.

Cases never leave the judge. A warm evaluation takes ready ones; while the judge is idle, used ones are redrawn. One
case serves at most MAX_USES evaluations, and a verification asks for all of them fresh.
"""

from contextlib import suppress
from dataclasses import dataclass

from toolkits.core.judge.compare import bad_reference
from toolkits.core.judge.inputs import Case, InvalidReference, Reference, draw
from toolkits.core.schema import Task

MAX_USES = 20


@dataclass
class _Entry:
    axes: dict[str, int]
    distribution: str
    case: Case | None = None
    uses: int = 0


class Cases:
    """Correctness rounds and timed cases of one task."""

    def __init__(self, task: Task, reference: Reference) -> None:
        self._task, self._reference = task, reference
        first = next(iter(task.distributions))
        self._rounds = [_Entry(axes, name) for axes in task.correctness for name in task.distributions]
        self._timed = {w.uuid: _Entry(w.axes, w.distribution or first) for w in task.workloads}

    def rounds(self) -> list[Case]:
        return [self._take(entry) for entry in self._rounds]

    def timed(self, uuid: str) -> Case:
        return self._take(self._timed[uuid])

    def _take(self, entry: _Entry) -> Case:
        if entry.case is None or entry.uses >= MAX_USES:
            self._renew(entry)
        entry.uses += 1
        assert entry.case
        return entry.case

    def _renew(self, entry: _Entry) -> None:
        case = draw(self._task, self._reference, entry.axes, entry.distribution)
        if problem := bad_reference(self._task, case):
            raise InvalidReference(problem)
        entry.case, entry.uses = case, 0

    def _entries(self) -> list[_Entry]:
        return [*self._rounds, *self._timed.values()]

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
