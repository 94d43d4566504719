"""The timed pairs of one workload on a device: bursts of candidate and baseline in random order, on new content.

Every call has content of its own, which the judge wrote before it asked; which of the answers it will look at only the
judge knows. Knows neither the request nor how figures are read.
"""

import random
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace

import torch

from toolkits.core.judge import gpu_calls, timing
from toolkits.core.judge.agreement import agree
from toolkits.core.judge.bench import Bench, of_baseline
from toolkits.core.judge.gpu_calls import Burst
from toolkits.core.judge.gpu_timed import GpuTimed, Side, side
from toolkits.core.judge.inputs import Case
from toolkits.core.judge.inspection import asked, inspect
from toolkits.core.judge.results import Rejected
from toolkits.core.judge.workers import Worker, scalars_of
from toolkits.core.schema import Stage

CALLS, FEWEST_CALLS = 8, 3
"""Of the longer burst, where the memory allows it."""
MEMORY_SHARE = 8
"""Of the free memory, so many-th part for contents and answers of each worker."""
COLD_PAIRS, COLD_PAIRS_FRESH, GRAPH_PAIRS = 3, 12, 3
WORKLOAD_LIMIT_S = 8.0
CHECKED = 0.5
"""Share of the pairs of which one answer is compared."""


class GpuPairs:
    """Draws the pairs of one workload into `result`; `ready` is a case of the kind that is timed."""

    def __init__(
        self, bench: Bench, candidate: Worker, slot: int, ready: Case, result: GpuTimed, free_bytes: int
    ) -> None:
        self._bench, self._candidate, self._slot = bench, candidate, slot
        self._ready, self._result = ready, result
        self._random = random.SystemRandom()
        memory = bench.memory(ready.axes)
        size = memory.inputs.size + candidate.outputs(slot).size
        self._calls = max(min(CALLS, free_bytes // MEMORY_SHARE // size - 1), FEWEST_CALLS)
        self._limit_s = bench.task.call_timeout_s
        self._elsewhere: dict[Worker, int] = {}
        """Wall time of requests without a figure, in the current pair."""

    def draw(self, *, fresh: bool) -> None:
        """Pairs until the interval decides or the limit is reached; then some cold ones, and some from graphs."""
        result, deadline = self._result, time.monotonic() + WORKLOAD_LIMIT_S
        known = self._random.randrange(timing.CHECKPOINTS[0])
        while not _enough(result, deadline):
            self._pair(known=result.pairs == known)
        for _ in range(COLD_PAIRS_FRESH if fresh else COLD_PAIRS):
            self._cold_pair()
        for _ in range(GRAPH_PAIRS):
            if not self._graph_pair():
                break
        for worker in (self._candidate, *self._bench.baselines):
            with self._asked(worker):
                gpu_calls.give_back(worker, self._slot, self._limit_s)

    def _pair(self, *, known: bool) -> None:
        """Candidate and baseline, each in a burst of one and a burst of several; every second time the twin too."""
        baseline, twin = self._bench.baselines
        sides = [self._candidate, baseline] + ([twin] if self._result.pairs % 2 == 0 else [])
        secret = self._random.randrange(self._calls + 1)
        case = self._staged(sides, secret, known=known)
        found = self._both_bursts(sides)
        if known or self._random.random() < CHECKED:
            self._check(case, secret)
        ours, theirs = (
            replace(found[worker], elsewhere_ns=self._elsewhere[worker]) for worker in (self._candidate, baseline)
        )
        self._result.add(ours, theirs, found.get(twin))

    def _cold_pair(self) -> None:
        baseline = self._bench.baselines[0]
        sides = [self._candidate, baseline]
        secret = self._random.randrange(self._calls + 1)
        case = self._staged(sides, secret, known=False)
        found = self._both_bursts(sides, cold=True)
        self._result.cold.append((found[self._candidate], found[baseline]))
        self._check(case, secret)

    def _graph_pair(self) -> bool:
        """Whether both sides can be replayed from a graph, and the candidate's answers are right then too."""
        baseline = self._bench.baselines[0]
        secret = self._random.randrange(self._calls)
        case = self._staged([self._candidate, baseline], secret, known=False)
        found: list[Burst] = []
        for worker in (self._candidate, baseline):
            with self._asked(worker):
                found.append(gpu_calls.burst(worker, self._slot, range(self._calls), self._limit_s, graph=True))
        ours, theirs = found
        if why := ours.no_graph or theirs.no_graph:
            self._result.no_graph, self._result.graphs = why, []
            return False
        try:
            self._check(case, secret)
        except Rejected as error:  # legal: what depends on content the host looked at cannot be replayed
            self._result.no_graph, self._result.graphs = f"answers from a graph are wrong: {error}", []
            return False
        if not self._same_answers(baseline, case):
            self._result.no_graph, self._result.graphs = "the baseline's answers from a graph are wrong", []
            return False
        means = [sum(one.claimed_ns) / len(one.claimed_ns) for one in (ours, theirs)]
        self._result.graphs.append((means[0], means[1]))
        return True

    def _same_answers(self, baseline: Worker, case: Case) -> bool:
        """Whether both sides' last answers agree, of which the candidate's is right."""
        scale = self._bench.task.distributions[case.distribution].tolerance_scale
        ours, theirs = (worker.outputs(self._slot).tensors for worker in (self._candidate, baseline))
        return agree(self._bench.task, ours, theirs, scale)

    def _staged(self, sides: list[Worker], secret: int, *, known: bool) -> Case:
        """New contents for all calls, with every side; the case of the secret one, in the judge's own memory."""
        kept, self._elsewhere = self._ready, dict.fromkeys(sides, 0)
        for at in range(self._calls + 1):
            case = self._ready if known and at == secret else self._bench.write_new(self._ready)
            if case is self._ready:
                self._bench.write(case)
            elif at == secret:
                kept = _own(case)
            scalars = scalars_of(self._bench.task, case.inputs)
            for worker in self._random.sample(sides, len(sides)):  # whoever is first may find it in no cache
                with self._asked(worker):
                    self._elsewhere[worker] += gpu_calls.stage(worker, self._slot, at, scalars, self._limit_s)
        return kept

    def _both_bursts(self, sides: list[Worker], *, cold: bool = False) -> dict[Worker, Side]:
        """Of each side, in random order: the first content alone, and all others; either may come first."""
        self._random.shuffle(sides)
        found: dict[Worker, Side] = {}
        for worker in sides:
            orders = [[0], self._random.sample(range(1, self._calls + 1), self._calls)]
            if self._random.random() < 0.5:
                orders.reverse()
            with self._asked(worker):
                bursts = [gpu_calls.burst(worker, self._slot, order, self._limit_s, cold=cold) for order in orders]
            one, many = sorted(bursts, key=lambda burst: len(burst.claimed_ns))
            found[worker] = side(one, many)
        return found

    def _check(self, case: Case, at: int) -> None:
        """Compare one answer, which nobody could know would be the one; its content is written again, to ask again."""
        self._bench.write(case)
        for worker in (self._candidate, self._bench.baselines[0]):
            with self._asked(worker):
                self._elsewhere[worker] += gpu_calls.take(worker, self._slot, at, self._limit_s)
        taken = self._candidate.outputs(self._slot).taken()
        label = self._result.workload.uuid
        inspect(self._bench, self._candidate, self._slot, case, taken, label, Stage.RECHECK)
        self._result.checked += 1

    @contextmanager
    def _asked(self, worker: Worker) -> Generator[None]:
        blamed = asked(worker, self._result.workload.uuid, Stage.TIMING) if worker is self._candidate else of_baseline()
        with blamed:
            yield


def _own(case: Case) -> Case:
    """With copies of the tensors: the next content is written over them."""
    values = {name: value.clone() if isinstance(value, torch.Tensor) else value for name, value in case.inputs.items()}
    return replace(case, inputs=values)


def _enough(result: GpuTimed, deadline: float) -> bool:
    """Whether the pairs decide, or are all that are drawn, or the time is over and they carry an interval."""
    least, most = timing.CHECKPOINTS[0], timing.CHECKPOINTS[-1]
    if result.pairs in timing.CHECKPOINTS and result.decided():
        return True
    return result.pairs == most or (result.pairs >= least and time.monotonic() > deadline)
