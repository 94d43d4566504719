"""What the judge keeps warm for one task and one baseline, and where an evaluation's time goes."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import TypeVar

import torch

from toolkits.core.errors import HarnessError
from toolkits.core.judge.arena import Inputs, Outputs
from toolkits.core.judge.cases import Cases
from toolkits.core.judge.compare import check_outputs
from toolkits.core.judge.inputs import Case, load_reference, refreshed
from toolkits.core.judge.request import EvaluationRequest
from toolkits.core.judge.workers import Spent, Worker, WorkerFailure, scalars_of

Answer = TypeVar("Answer")


class Parts:
    """Where an evaluation's time goes, by part."""

    def __init__(self) -> None:
        self.ms: dict[str, float] = {}

    @contextmanager
    def part(self, name: str) -> Generator[None]:
        started = time.perf_counter_ns()
        try:
            yield
        finally:
            self.ms[name] = self.ms.get(name, 0.0) + (time.perf_counter_ns() - started) / 1e6


class Bench:
    """What is kept warm for one task and one baseline: reference, ready cases, baseline worker and its twin."""

    def __init__(self, request: EvaluationRequest, fork: Callable[[], Worker]) -> None:
        self.key = warm_key(request)
        self.task = request.task
        self.reference = load_reference(request.task.folder)
        self.cases = Cases(request.task, self.reference)
        self._fork = fork
        self._loaded = (request.baseline, request.baseline_build)
        self._inputs: dict[int, Inputs] = {}
        self._outputs: dict[tuple[str, int], Outputs] = {}
        self.baselines: list[Worker] = []
        self.parts = Parts()
        self._warm: set[int] = set()

    def start_baselines(self) -> list[Worker]:
        """The baseline and its twin, for the A/A pairs; a dead one is replaced."""
        if not all(worker.alive() for worker in self.baselines):
            self._close_baselines()
        while len(self.baselines) < 2:
            worker = self._fork()
            self.baselines.append(worker)
            blameless(lambda worker=worker: worker.load(*self._loaded))
        return self.baselines

    def bind(self, worker: Worker, who: str, slot: int, axes: dict[str, int]) -> None:
        """Give a worker the memory of a workload; the same memory serves later evaluations."""
        if worker.bound(slot):
            return
        if slot not in self._inputs:
            self._inputs[slot] = Inputs(self.task, axes)
        if (who, slot) not in self._outputs:
            self._outputs[who, slot] = Outputs(self.task, axes)
        self._outputs[who, slot].restore_guards()
        self._outputs[who, slot].poison()  # an earlier candidate's answers are still there
        worker.bind(slot, self.task, axes, self._inputs[slot], self._outputs[who, slot])

    def warm_up_baselines(self, slot: int, case: Case) -> None:
        """The first call on a workload pays for libraries that load late; the baseline must pass its own task."""
        names = zip(("baseline", "twin"), self.baselines, strict=True)
        for who, worker in names:
            blameless(lambda who=who, worker=worker: self.bind(worker, who, slot, case.axes))
        if slot in self._warm:
            return
        self.write(slot, case)
        for worker in self.baselines:
            self.call_baseline(worker, slot, case)
            if finding := check_outputs(self.task, case, worker.outputs(slot).taken()):
                raise HarnessError(f"the task's baseline does not pass its own task: {finding}")
        self._warm.add(slot)

    def refreshed(self, case: Case, stream: torch.Generator, *, expected: bool) -> Case:
        with self.parts.part("new_content"):
            return refreshed(self.task, self.reference, case, stream, expected=expected)

    def call(self, worker: Worker, slot: int, case: Case) -> Spent:
        """One call on the content that was written last."""
        return worker.call(slot, scalars_of(self.task, case.inputs), self.task.call_timeout_s)

    def call_baseline(self, worker: Worker, slot: int, case: Case) -> Spent:
        """The same of the baseline or its twin."""
        return blameless(lambda: self.call(worker, slot, case))

    def write(self, slot: int, case: Case) -> None:
        """New content, at the same address, for every worker of the workload."""
        with self.parts.part("new_content"):
            self._inputs[slot].write(case.inputs)

    def close(self) -> None:
        self._close_baselines()
        for memory in [*self._inputs.values(), *self._outputs.values()]:
            memory.close()

    def _close_baselines(self) -> None:
        """What they knew is lost with them; a zygote that is gone has ended them."""
        for worker in self.baselines:
            with suppress(HarnessError):
                worker.close()
        self.baselines.clear()
        self._warm.clear()


def warm_key(request: EvaluationRequest) -> str:
    return f"{request.task.content_hash} {request.baseline.id}"


def blameless(step: Callable[[], Answer]) -> Answer:
    """Run a step of the baseline; its failure is the lab's, never the candidate's."""
    try:
        return step()
    except WorkerFailure as error:
        raise HarnessError(f"the task's baseline failed ({error.cause}): {error.detail}") from error
