"""Every workload that was asked for is accounted for by its id, and a part of them never passes as the whole."""

import os
from pathlib import Path

import pytest

from tests.toolkits.conftest import BASELINE, LOOP, Evaluate, cpp, python
from toolkits.core.errors import InvalidInput
from toolkits.core.judge.client import Judge
from toolkits.core.judge.completeness import accounted
from toolkits.core.judge.request import EvaluationRequest, selection
from toolkits.core.schema import BenchmarkResult, CompileResult, Measurement, Stage, Status, Task, Workload
from toolkits.core.toolkit import get_toolkit

pytestmark = pytest.mark.anyio
WORKLOADS = [Workload(uuid=name, axes={"rows": 8, "columns": 64}) for name in ("a", "b", "c")]


@pytest.fixture
def three(task: Task) -> Task:
    """The scale task with three workloads."""
    return task.model_copy(update={"workloads": WORKLOADS, "content_hash": "scale-3"})


def _passed(*uuids: str) -> BenchmarkResult:
    measurements = [Measurement(workload=uuid, axes={}, status=Status.PASSED, latency_us=1.0) for uuid in uuids]
    return BenchmarkResult(
        task="scale",
        solution="s",
        mode="full",
        status=Status.PASSED,
        stage=Stage.DONE,
        passed=len(uuids),
        total=len(uuids),
        measurements=measurements,
        worst=1.0,
        worst_workload="a",
    )


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ((), "an empty selection of workloads measures nothing"),
        (("a", "x"), "no workload 'x'"),
        (("a", "b", "a"), "'a' is named more than once"),
    ],
)
def test_a_selection_that_is_none_is_refused_and_told_the_ids(
    three: Task, given: tuple[str, ...], complaint: str
) -> None:
    with pytest.raises(InvalidInput, match=complaint) as refusal:
        selection(three, given)
    assert "a, b, c" in str(refusal.value)


def test_a_selection_is_timed_in_the_order_of_the_task(three: Task) -> None:
    assert [w.uuid for w in selection(three, ("c", "a"))] == ["a", "c"] and selection(three, None) == WORKLOADS


@pytest.mark.parametrize(
    ("measured", "said"),
    [
        (("a", "c"), "no measurement of b"),
        ((), "no measurement of a, b, c"),
        (("a", "b", "c", "d"), "nobody asked for: d"),
        (("a", "b", "c", "c"), "nobody asked for: c"),
    ],
)
def test_a_pass_that_does_not_cover_what_was_asked_for_is_a_runtime_error(measured: tuple[str, ...], said: str) -> None:
    result = accounted(_passed(*measured), WORKLOADS, 3)
    assert (result.status, result.cause) == (Status.RUNTIME_ERROR, "missing_workload") and said in result.detail
    assert result.speedup is None and result.verdict is None and result.worst is None
    assert {m.workload: m.status for m in result.measurements} == {
        w.uuid: Status.PASSED if w.uuid in measured else Status.RUNTIME_ERROR for w in WORKLOADS
    }


def test_a_workload_that_did_not_pass_is_no_part_of_a_pass() -> None:
    result = _passed("a", "b", "c")
    failed = result.measurements[1].model_copy(update={"status": Status.TIMEOUT})
    mixed = result.model_copy(update={"measurements": [result.measurements[0], failed, result.measurements[2]]})
    assert "not passed: b" in accounted(mixed, WORKLOADS, 3).detail


def test_what_was_not_reached_is_skipped_with_the_reason() -> None:
    failed = _passed().model_copy(
        update={"status": Status.TIMEOUT, "stage": Stage.TIMING, "workload": "b", "cause": "time_limit"}
    )
    result = accounted(failed, WORKLOADS, 3)
    assert [m.status for m in result.measurements] == [Status.SKIPPED, Status.TIMEOUT, Status.SKIPPED]
    assert result.measurements[2].detail == "not timed: TIMEOUT at timing on b" and result.total == 3


async def _judged(judge: Judge, task: Task, folder: Path, workloads: tuple[str, ...] | None) -> BenchmarkResult:
    solutions = cpp(LOOP), python(BASELINE)
    first, second = [await get_toolkit(s.toolkit).compile(task, s, folder) for s in solutions]
    request = _request(task, first, second, workloads)
    return await judge.evaluate(request, lambda what, share: None)


def _request(
    task: Task, first: CompileResult, second: CompileResult, workloads: tuple[str, ...] | None
) -> EvaluationRequest:
    return EvaluationRequest(
        task=task,
        candidate=cpp(LOOP),
        candidate_build=first,
        baseline=python(BASELINE),
        baseline_name="torch",
        baseline_build=second,
        workloads=workloads,
    )


async def test_the_judge_times_what_was_selected_and_the_result_says_of_how_many(
    judge: Judge, three: Task, tmp_path: Path
) -> None:
    part = await _judged(judge, three, tmp_path, ("c", "a"))
    assert part.status is Status.PASSED and [m.workload for m in part.measurements] == ["a", "c"]
    assert (part.passed, part.total, part.of_task, part.partial) == (2, 2, 3, True)
    whole = await _judged(judge, three, tmp_path, None)
    assert (whole.passed, whole.total, whole.of_task, whole.partial) == (3, 3, 3, False)


async def test_a_judge_that_forgets_a_workload_cannot_pass_it(
    three: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgets = (
        "import toolkits.core.judge.request as request\n"
        "all_of_them = request.selection\n"
        "request.selection = lambda task, uuids: all_of_them(task, uuids)[:1]\n"
    )
    (tmp_path / "sitecustomize.py").write_text(forgets, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(Path(__file__).parents[3])]))
    judge = Judge()
    try:
        result = await _judged(judge, three, tmp_path / "builds", None)
    finally:
        await judge.close()
    assert (result.status, result.cause) == (Status.RUNTIME_ERROR, "missing_workload"), result
    assert "no measurement of b, c" in result.detail


async def test_a_candidate_that_fails_is_told_of_every_workload(evaluate: Evaluate) -> None:
    result = await evaluate(python("def scale(x, factor, y):\n    raise ValueError('no')\n"), "full")
    assert result.status is Status.RUNTIME_ERROR and (result.passed, result.total) == (0, 1)
    (line,) = result.measurements
    assert line.status is Status.SKIPPED and "RUNTIME_ERROR at correctness" in line.detail
