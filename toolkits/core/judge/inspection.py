"""Calls of the candidate, and what its memory and process show to be wrong after them."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from toolkits.core.judge.bench import Bench
from toolkits.core.judge.compare import Finding, check_outputs, spot_check
from toolkits.core.judge.inputs import Case
from toolkits.core.judge.results import BLOCKED_LIMIT, Rejected, Timed
from toolkits.core.judge.workers import Spent, Worker, WorkerFailure
from toolkits.core.schema import CompileResult, Solution, Stage, Status


@contextmanager
def _blamed(stage: Stage, label: str = "") -> Generator[None]:
    """A step of the candidate: what goes wrong in it is a rejection."""
    try:
        yield
    except WorkerFailure as error:
        raise Rejected(error.status, stage, error.cause, error.detail, label) from error


IDLE_LIMIT_NS = 50_000
"""CPU time between two calls, median, that a waiting process cannot have used."""


def load(candidate: Worker, solution: Solution, build: CompileResult) -> None:
    with _blamed(Stage.LOAD):
        candidate.load(solution, build)


def bind(bench: Bench, worker: Worker, slot: int, axes: dict[str, int], label: str, stage: Stage) -> None:
    """Give the candidate the memory of a workload."""
    with _blamed(stage, label):
        bench.bind(worker, "candidate", slot, axes)


def call(bench: Bench, worker: Worker, slot: int, case: Case, label: str, stage: Stage) -> Spent:
    """One call of the candidate."""
    with _blamed(stage, label):
        return bench.call(worker, slot, case)


def checked_call(bench: Bench, worker: Worker, slot: int, case: Case, label: str, stage: Stage) -> dict[str, Any]:
    """New content, poisoned outputs, one call, everything inspected; returns the outputs."""
    bench.write(slot, case)
    call(bench, worker, slot, case, label, stage)
    outputs = worker.outputs(slot).taken()
    inspect(bench, worker, slot, case, outputs, label, stage)
    return outputs


def inspect(
    bench: Bench, worker: Worker, slot: int, case: Case, outputs: dict[str, Any], label: str, stage: Stage
) -> None:
    """Refuse what the memory shows to be wrong, after `outputs` were taken at return."""
    with bench.parts.part("compare"):
        _refuse(bench, worker, slot, case, outputs, label, stage)


def _refuse(
    bench: Bench, worker: Worker, slot: int, case: Case, outputs: dict[str, Any], label: str, stage: Stage
) -> None:
    memory = worker.outputs(slot)
    if name := memory.unwritten():
        what = f"{name} was not written"
        raise Rejected(Status.INCORRECT_NUMERICAL, stage, "output_not_written", what, label)
    look = spot_check if stage is Stage.RECHECK else check_outputs
    if finding := look(bench.task, case, outputs):
        if stage is Stage.RECHECK:
            _refuse_wrong_when_timed(bench, worker, slot, case, finding, label)
        raise Rejected(Status.INCORRECT_NUMERICAL, stage, finding.cause, str(finding), label)
    if not memory.guards_intact():
        what = "bytes before or after a tensor were overwritten"
        raise Rejected(Status.RUNTIME_ERROR, stage, "out_of_bounds_write", what, label)
    if not memory.equal(outputs):
        what = "outputs changed after the call had returned"
        raise Rejected(Status.REWARD_HACK, stage, "output_changed_after_return", what, label)


def _refuse_wrong_when_timed(bench: Bench, worker: Worker, slot: int, case: Case, finding: Finding, label: str) -> None:
    """Wrong when timed though right at first: asked again, a race mostly answers differently, a cache does not."""
    before = worker.outputs(slot).taken()
    call(bench, worker, slot, case, label, Stage.RECHECK)
    if worker.outputs(slot).equal(before):
        raise Rejected(Status.REWARD_HACK, Stage.RECHECK, "stale_content", str(finding), label)
    raise Rejected(Status.INCORRECT_NUMERICAL, Stage.RECHECK, "not_repeatable", str(finding), label)


def refuse_foul_play(candidate: Worker, result: Timed) -> None:
    """The clocks must agree, and nothing may run beside the worker."""
    if candidate.company():
        raise _foul(result, "extra_process", "the solution left other processes running")
    least = result.blocked_shares()[0]
    if least > BLOCKED_LIMIT:
        what = (
            f"in at least {least:.0%} of every call's wall time the process neither ran nor waited for its core: "
            "the work is done, or waited for, outside the measured process"
        )
        raise _foul(result, "clock_mismatch", what)
    if result.claims_lie():
        what = (
            f"the process used {result.unclaimed_ns() / 1e3:.0f} us of CPU a call beyond what its clock showed for the "
            "function: the clock was changed, or work went on after the return"
        )
        raise _foul(result, "clock_mismatch", what)
    if result.idle_ns() > IDLE_LIMIT_NS:
        what = f"the process used {result.idle_ns() / 1e3:.0f} us of CPU between two calls, when it had nothing to do"
        raise _foul(result, "clock_mismatch", what)


def _foul(result: Timed, cause: str, what: str) -> Rejected:
    return Rejected(Status.REWARD_HACK, Stage.TIMING, cause, what, result.workload.uuid)
