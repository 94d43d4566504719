"""A candidate's errors stand beside the baseline's; a task that cannot judge is refused; reruns differ if allowed."""

import pytest

from tests.toolkits.conftest import LOOP, REFERENCE, Evaluate, cpp, python
from toolkits.core.advice import advice
from toolkits.core.schema import Status, Task

pytestmark = pytest.mark.anyio
CUT = "for (int64_t i = 0; i < rows * columns; ++i) y[i] = x[i] * factor * (1 + 6e-7f);"


async def test_errors_of_an_exact_kernel_are_recorded_and_need_no_advice(evaluate: Evaluate) -> None:
    candidate = cpp(LOOP)
    result = await evaluate(candidate, mode="full")
    (record,) = result.errors
    assert (record.output, record.rule, record.tolerance) == ("y", "rel_l2", 1e-6)
    assert record.beside_baseline is not None and record.beside_baseline == record.baseline_error
    assert 0 < record.error < 1e-7 and advice(candidate, result.errors) == []


async def test_an_error_within_the_tolerance_and_far_above_the_baseline_s_is_advice_only(evaluate: Evaluate) -> None:
    candidate = cpp(CUT)
    result = await evaluate(candidate, mode="full")
    assert result.status is Status.PASSED
    (record,) = result.errors
    assert record.beside_baseline and record.beside_baseline > 5e-7
    # A multiplication alone errs by a rounding; thirty times that is above this task's tolerance.
    wide = record.model_copy(update={"baseline_error": record.beside_baseline / 31})
    assert "was precision cut?" in advice(candidate, [wide])[0]


async def test_a_check_without_timing_has_errors_beside_nobody(evaluate: Evaluate) -> None:
    (record,) = (await evaluate(cpp(LOOP))).errors
    assert record.round and record.beside_baseline is None and record.baseline_error is None


async def test_a_task_that_a_copy_of_an_input_passes_judges_nobody(task: Task, evaluate: Evaluate) -> None:
    (task.folder / "reference.py").write_text(REFERENCE.replace('"factor": 2.5', '"factor": 1.0'), encoding="utf-8")
    result = await evaluate(python("def scale(x, factor, y):\n    y.copy_(x)\n"), content_hash="copy")
    assert result.status is Status.INVALID_REFERENCE and "a copy of input x passes" in result.detail, result


async def test_runs_that_differ_within_the_tolerance_pass_only_a_task_that_says_so(evaluate: Evaluate) -> None:
    candidate = cpp(f"{LOOP} static int calls; if (++calls % 2) y[0] *= 1 + 2e-7f;")
    refused = await evaluate(candidate)
    assert (refused.status, refused.cause) == (Status.INCORRECT_NUMERICAL, "not_repeatable")
    assert (await evaluate(candidate, repeatable=False, content_hash="loose")).status is Status.PASSED
    wrong = cpp(f"{LOOP} static int calls; if (++calls % 5 == 0) y[0] *= 2;")
    assert (await evaluate(wrong, repeatable=False, content_hash="loose")).status is not Status.PASSED
