"""Calls of the candidate, and what its memory and process show to be wrong after them."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from toolkits.core.judge.agreement import agree
from toolkits.core.judge.bench import Bench
from toolkits.core.judge.compare import Finding, check_outputs, findings, first_bad
from toolkits.core.judge.inputs import Case
from toolkits.core.judge.results import Rejected
from toolkits.core.judge.timed import BLOCKED_LIMIT, IDLE_LIE_NS, Timed
from toolkits.core.judge.workers import Spent, Worker, WorkerFailure
from toolkits.core.schema import CompileResult, Solution, Stage, Status


@contextmanager
def _blamed(stage: Stage, label: str = "") -> Generator[None]:
    """A step of the candidate: what goes wrong in it is a rejection."""
    try:
        yield
    except WorkerFailure as error:
        raise Rejected(error.status, stage, error.cause, error.detail, label) from error


def load(candidate: Worker, solution: Solution, build: CompileResult) -> None:
    with _blamed(Stage.LOAD):
        candidate.load(solution, build)


def bind(bench: Bench, worker: Worker, axes: dict[str, int], label: str, stage: Stage) -> int:
    """Give the candidate the memory of a set of axes; returns its slot."""
    with _blamed(stage, label):
        return bench.bind(worker, "candidate", axes)


def call(bench: Bench, worker: Worker, slot: int, case: Case, label: str, stage: Stage) -> Spent:
    """One answer of the candidate."""
    with asked(worker, label, stage):
        return bench.call(worker, slot, case)


@contextmanager
def asked(worker: Worker, label: str, stage: Stage) -> Generator[None]:
    """While the candidate is asked to plan or run: what goes wrong is its fault, and it may start no process."""
    with _blamed(stage, label):
        try:
            yield
        finally:
            _refuse_process(worker, label)


def checked_call(bench: Bench, worker: Worker, slot: int, case: Case, label: str, stage: Stage) -> dict[str, Any]:
    """New content, poisoned outputs, one call, everything inspected; returns the outputs."""
    bench.write(case)
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
    if stage is Stage.RECHECK:
        _refuse_company(worker, label)
    if name := memory.unwritten():
        what = f"{name} was not written"
        raise Rejected(Status.INCORRECT_NUMERICAL, stage, "output_not_written", what, label)
    if finding := _finding(bench, slot, case, outputs, label, stage):
        if stage is Stage.RECHECK:
            _refuse_wrong_when_timed(bench, worker, slot, case, finding, label)
        if stage is Stage.TIMING and memory.repeats(outputs):
            what = f"the answer to earlier content again, byte for byte; {finding}"
            raise Rejected(Status.REWARD_HACK, stage, "stale_content", what, label)
        raise Rejected(Status.INCORRECT_NUMERICAL, stage, finding.cause, str(finding), label)
    workspace = worker.workspace(slot)
    if not memory.guards_intact() or (workspace and not workspace.guards_intact()):
        what = "bytes before or after a tensor, or the plan's workspace, were overwritten"
        raise Rejected(Status.RUNTIME_ERROR, stage, "out_of_bounds_write", what, label)
    if not memory.equal(outputs):
        what = "outputs changed after the call had returned"
        raise Rejected(Status.REWARD_HACK, stage, "output_changed_after_return", what, label)
    memory.accepted = outputs


def _finding(bench: Bench, slot: int, case: Case, outputs: dict[str, Any], label: str, stage: Stage) -> Finding | None:
    """What is wrong with the outputs; of new content the reference is asked only where the baseline disagrees."""
    if not case.expected:
        scale = bench.task.distributions[case.distribution].tolerance_scale
        if agree(bench.task, outputs, bench.baselines[0].outputs(slot).tensors, scale):
            return None
        return check_outputs(bench.task, bench.with_expected(case), outputs)
    found, beside = findings(bench.task, case, outputs), None
    if stage is Stage.RECHECK:  # the baseline has just answered the same
        beside = bench.baseline_findings(slot, case)
    bench.errors.add(found, label, beside)
    return first_bad(found)


def _refuse_wrong_when_timed(bench: Bench, worker: Worker, slot: int, case: Case, finding: Finding, label: str) -> None:
    """Wrong when timed though right at first: asked again, a race mostly answers differently, a cache does not."""
    before = worker.outputs(slot).taken()
    call(bench, worker, slot, case, label, Stage.RECHECK)
    if worker.outputs(slot).equal(before):
        raise Rejected(Status.REWARD_HACK, Stage.RECHECK, "stale_content", str(finding), label)
    raise Rejected(Status.INCORRECT_NUMERICAL, Stage.RECHECK, "not_repeatable", str(finding), label)


def stand_alone(candidate: Worker, label: str) -> None:
    """From here on nobody else may work for the candidate."""
    candidate.forbid_processes()
    _refuse_company(candidate, label)


def _refuse_company(candidate: Worker, label: str) -> None:
    if candidate.may_have_company() and candidate.company():
        what = "the solution left other processes running"
        raise Rejected(Status.REWARD_HACK, Stage.TIMING, "extra_process", what, label)


def _refuse_process(candidate: Worker, label: str) -> None:
    """Whatever came of it: a request for a process explains a failure too."""
    if candidate.asked_for_process():
        what = "the solution tried to start a process while it was timed (fork, clone, subprocess); threads may be used"
        raise Rejected(Status.REWARD_HACK, Stage.TIMING, "extra_process", what, label)


def refuse_foul_play(candidate: Worker, result: Timed) -> None:
    """The clocks must agree, and nothing may run beside the worker."""
    _refuse_company(candidate, result.workload.uuid)
    shares = result.blocked_shares()
    usual = shares[len(shares) // 4]
    if usual > BLOCKED_LIMIT:
        what = (
            f"in three of four calls the process neither ran nor waited for its core for at least {usual:.0%} of the "
            "wall time: the work is done, or waited for, outside the measured process"
        )
        raise _foul(result, "clock_mismatch", what)
    if result.claims_lie():
        what = (
            f"the process used {result.unclaimed_ns() / 1e3:.0f} us of CPU a call beyond what its clock showed for the "
            "function: the clock was changed, or work went on after the return"
        )
        raise _foul(result, "clock_mismatch", what)
    if result.below_floor():
        raise _foul(result, "clock_mismatch", result.below_floor_evidence())
    if result.idle_ns() > IDLE_LIE_NS:
        what = f"the process used {result.idle_ns() / 1e3:.0f} us of CPU between two calls, when it had nothing to do"
        raise _foul(result, "clock_mismatch", what)


def _foul(result: Timed, cause: str, what: str) -> Rejected:
    return Rejected(Status.REWARD_HACK, Stage.TIMING, cause, what, result.workload.uuid)
