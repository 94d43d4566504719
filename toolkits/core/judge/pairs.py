"""The timed pairs of one workload: candidate and baseline in random order, on content that is new in every pair.

Where solutions plan, all plans of a pair come before all runs, and what no plan may read is written in between. Knows
neither the request nor how figures are read.
"""

import random
import time
from contextlib import AbstractContextManager
from dataclasses import replace

import torch

from toolkits.core.judge import timing
from toolkits.core.judge.bench import Bench, of_baseline
from toolkits.core.judge.inputs import Case
from toolkits.core.judge.inspection import asked, inspect
from toolkits.core.judge.timed import Timed
from toolkits.core.judge.workers import Spent, Worker
from toolkits.core.schema import Stage

CHECKED = 0.15
"""Share of the pairs, chosen at random, that are compared with the baseline's answer to the same content."""
COLD_PAIRS, COLD_PAIRS_FRESH = 2, 12
"""With empty caches; a verification draws enough for an interval."""
WORKLOAD_LIMIT_S = 8.0
"""Wall time after which no further pairs are drawn for a workload."""


class Pairs:
    """Draws the pairs of one workload into `result`; `ready` is a case of the kind that is timed."""

    def __init__(self, bench: Bench, candidate: Worker, slot: int, ready: Case, result: Timed) -> None:
        self._bench, self._candidate, self._slot = bench, candidate, slot
        self._ready, self._result = ready, result
        self._random = random.SystemRandom()

    def draw(self, *, fresh: bool) -> None:
        """Pairs until the interval decides or the limit is reached, then some with empty caches."""
        result, deadline = self._result, time.monotonic() + WORKLOAD_LIMIT_S
        known = self._random.randrange(timing.CHECKPOINTS[0])
        while not _enough(result, deadline):
            is_known = result.pairs == known
            if is_known:
                self._bench.write(self._ready)
            case = self._ready if is_known else self._bench.write_new(self._ready)
            self._pair(case, check=is_known or self._random.random() < CHECKED)
        cold = COLD_PAIRS_FRESH if fresh else COLD_PAIRS
        checked = self._random.randrange(cold)
        for number in range(cold):
            self._cold_pair(self._bench.write_new(self._ready), check=number == checked)

    def _pair(self, case: Case, *, check: bool) -> None:
        """Candidate and baseline on the same content; every second time the baseline's twin too."""
        baseline, twin = self._bench.baselines
        sides = [self._candidate, baseline] + ([twin] if self._result.pairs % 2 == 0 else [])
        spent, at_return = self._answers(sides, case, keep=check)
        self._result.add(spent[self._candidate], spent[baseline], spent.get(twin))
        if check:
            self._check(case, at_return)

    def _cold_pair(self, case: Case, *, check: bool) -> None:
        """The same with inputs and outputs in no cache."""
        baseline = self._bench.baselines[0]
        spent, at_return = self._answers([self._candidate, baseline], case, keep=check, cold=True)
        self._result.cold.append((spent[self._candidate], spent[baseline]))
        if check:
            self._check(case, at_return)

    def _check(self, case: Case, at_return: dict[str, torch.Tensor]) -> None:
        label = self._result.workload.uuid
        inspect(self._bench, self._candidate, self._slot, case, at_return, label, Stage.RECHECK)
        self._result.checked += 1

    def _answers(
        self, sides: list[Worker], case: Case, *, keep: bool = False, cold: bool = False
    ) -> tuple[dict[Worker, Spent], dict[str, torch.Tensor]]:
        """What each side's answer cost, in random order, and what the candidate's outputs held when it returned."""
        bench, slot, at_return = self._bench, self._slot, dict[str, torch.Tensor]()
        self._random.shuffle(sides)
        plans: dict[Worker, Spent | None] = {}
        for side in sides:
            with self._asked(side):
                plans[side] = bench.plan(side, slot, case, cold=cold)
        bench.reveal(case)
        spent: dict[Worker, Spent] = {}
        for side in sides:
            with self._asked(side):
                spent[side] = replace(bench.run(side, slot, case, cold=cold), plan=plans[side])
            if keep and side is self._candidate:
                at_return = side.outputs(slot).taken()
        return spent, at_return

    def _asked(self, side: Worker) -> AbstractContextManager[None]:
        if side is self._candidate:
            return asked(side, self._result.workload.uuid, Stage.TIMING)
        return of_baseline()


def _enough(result: Timed, deadline: float) -> bool:
    """Whether the pairs decide, or are all that are drawn, or the time is over and they carry an interval."""
    least, most = timing.CHECKPOINTS[0], timing.CHECKPOINTS[-1]
    if result.pairs in timing.CHECKPOINTS and result.decided():
        return True
    return result.pairs == most or (result.pairs >= least and time.monotonic() > deadline)
