"""What the judge keeps warm for one task and one baseline, and where an evaluation's time goes."""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, TypeVar

from toolkits.core.errors import HarnessError
from toolkits.core.judge import caches
from toolkits.core.judge.admission import refusal
from toolkits.core.judge.cases import Cases
from toolkits.core.judge.closeness import WorstErrors
from toolkits.core.judge.compare import Finding, bad_reference, check_outputs, findings
from toolkits.core.judge.content import Draw
from toolkits.core.judge.inputs import (
    Case,
    InvalidReference,
    drawn,
    load_reference,
    refreshed,
    secret_generator,
    with_expected,
)
from toolkits.core.judge.request import EvaluationRequest
from toolkits.core.judge.shared import Shared
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
        self.reference = load_reference(request.task.folder, request.task.reference_timeout_s)
        self.cases = Cases(request.task, self.reference)
        self._fork = fork
        self._loaded = (request.baseline, request.baseline_build)
        self._memory: dict[tuple[tuple[str, int], ...], Shared] = {}
        self._draw = Draw(secret_generator())
        self.baselines: list[Worker] = []
        self.parts = Parts()
        self.errors = WorstErrors()
        self._warm: set[int] = set()
        self._beside: dict[int, tuple[Case, list[Finding]]] = {}
        self._admitted = False

    def baseline_findings(self, slot: int, case: Case) -> list[Finding]:
        """What the checks see of the baseline's answer to a ready case, just given; looked at once a case."""
        known = self._beside.get(slot)
        if known is None or known[0] is not case:
            known = case, findings(self.task, case, self.baselines[0].outputs(slot).tensors)
            self._beside[slot] = known
        return known[1]

    def admit(self, rounds: list[Case]) -> None:
        """Once: a task that answers without computation pass, or whose reference is no function, judges nobody."""
        if not self._admitted and (problem := refusal(self.task, self.reference, rounds)):
            raise InvalidReference(problem)
        self._admitted = True

    def start_baselines(self) -> list[Worker]:
        """The baseline and its twin, for the A/A pairs; a dead one is replaced."""
        if not all(worker.alive() for worker in self.baselines):
            self._close_baselines()
        while len(self.baselines) < 2:
            worker = self._fork()
            self.baselines.append(worker)
            blameless(lambda worker=worker: worker.load(*self._loaded, trusted=True))
        return self.baselines

    def memory(self, axes: dict[str, int]) -> Shared:
        """The memory of a set of axes; the same serves later evaluations."""
        key = tuple(sorted(axes.items()))
        if key not in self._memory:
            self._memory[key] = Shared(self.task, axes)
        return self._memory[key]

    def keep_memory(self, cases: list[Case]) -> None:
        """Give back the memory of sizes that were drawn once and are gone."""
        sizes = [case.axes for case in cases] + [workload.axes for workload in self.task.workloads]
        used = {tuple(sorted(axes.items())) for axes in sizes}
        for key in self._memory.keys() - used:
            self._memory.pop(key).close()

    def bind(self, worker: Worker, who: str, axes: dict[str, int]) -> int:
        """Give a worker the memory of a workload; the slot by which both name it."""
        memory = self.memory(axes)
        if not worker.bound(memory.slot):
            workspace = memory.workspace(who) if worker.planned else None
            worker.bind(memory.slot, self.task, axes, memory.inputs, memory.outputs(who), workspace)
        return memory.slot

    def warm_up_baselines(self, case: Case) -> None:
        """The first call on a workload pays for libraries that load late; the baseline must pass its own task."""
        for who, worker in zip(("baseline", "twin"), self.baselines, strict=True):
            slot = blameless(lambda who=who, worker=worker: self.bind(worker, who, case.axes))
            if slot in self._warm and who == "baseline":
                return
            self.write(case)
            self.call_baseline(worker, slot, case)
            if finding := check_outputs(self.task, case, worker.outputs(slot).taken()):
                raise HarnessError(f"the task's baseline does not pass its own task: {finding}", "baseline_failed")
        self._warm.add(self.memory(case.axes).slot)

    def write(self, case: Case) -> None:
        """A ready case, at the same address, for every worker of the workload."""
        with self.parts.part("new_content"):
            self.memory(case.axes).write(case.inputs)

    def write_new(self, case: Case) -> Case:
        """Content that nobody has seen, of the same kind as a ready case; the new case knows no expected values."""
        with self.parts.part("new_content"):
            memory = self.memory(case.axes)
            values: dict[str, Any] = case.inputs | memory.drafts
            if self.reference.refresh and case.distribution == next(iter(self.task.distributions)):
                refreshed(self.task, self.reference, values, self._draw)
                memory.publish()
                return Case(case.axes, case.distribution, values, {})
            fresh = drawn(self.task, self.reference, case.axes, case.distribution, secret_generator())
            memory.write(fresh.inputs)
            return fresh

    def with_expected(self, case: Case) -> Case:
        """What the reference makes of content that was written last; it must be content that can judge."""
        known = with_expected(self.task, self.reference, case)
        if problem := bad_reference(self.task, known):
            raise InvalidReference(problem)
        return known

    def reveal(self, case: Case) -> None:
        """Write what no plan may read: the plans of this content have returned."""
        with self.parts.part("new_content"):
            self.memory(case.axes).reveal()

    def call(self, worker: Worker, slot: int, case: Case) -> Spent:
        """One answer to the content that was written last: the plan, if the worker has one, and the run.

        Nothing about it tells a worker whether it is timed: the memory of a timed size is always poisoned in places.
        """
        with self.parts.part("new_content"):
            self.memory(case.axes).conceal()
        plan = self.plan(worker, slot, case)
        self.reveal(case)
        return replace(self.run(worker, slot, case), plan=plan)

    def plan(self, worker: Worker, slot: int, case: Case, *, cold: bool = False) -> Spent | None:
        """What a worker with a plan prepares from concealed content; cold: with all tensors in no cache."""
        if not self.task.plan or not (workspace := worker.workspace(slot)):
            return None
        workspace.poison()
        if cold:
            self._empty_caches(worker, slot, case)
        scalars = scalars_of(self.task, case.inputs)
        early = {name: value for name, value in scalars.items() if name in self.task.plan.inputs}
        return worker.plan(slot, early, self.task.call_timeout_s)

    def run(self, worker: Worker, slot: int, case: Case, *, cold: bool = False) -> Spent:
        """One run on revealed content, into outputs poisoned in places; cold: with all tensors in no cache."""
        worker.outputs(slot).poison_in_places()
        if cold:
            self._empty_caches(worker, slot, case)
        return worker.call(slot, scalars_of(self.task, case.inputs), self.task.call_timeout_s)

    def call_baseline(self, worker: Worker, slot: int, case: Case) -> Spent:
        """One answer of the baseline or its twin."""
        return blameless(lambda: self.call(worker, slot, case))

    def _empty_caches(self, worker: Worker, slot: int, case: Case) -> None:
        with self.parts.part("empty_caches"):
            inputs = self.memory(case.axes).inputs
            caches.empty([*inputs.tensors.values(), *worker.outputs(slot).tensors.values()])

    def close(self) -> None:
        self._close_baselines()
        for memory in self._memory.values():
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
    with of_baseline():
        return step()


@contextmanager
def of_baseline() -> Generator[None]:
    """The same for a block of steps."""
    try:
        yield
    except WorkerFailure as error:
        raise HarnessError(f"the task's baseline failed ({error.cause}): {error.detail}", "baseline_failed") from error
