"""What the judge makes of right, wrong, broken and dishonest solutions, through real processes and real compilers."""

import pytest

from tests.toolkits.conftest import BASELINE, LOOP, Evaluate, cpp, python
from toolkits.core.schema import Solution, Stage, Status, Verdict

VOLATILE = """
  for (int repeat = 0; repeat < 20; ++repeat)
    for (int64_t i = 0; i < rows * columns; ++i) ((volatile float*)y)[i] = x[i] * factor;
"""


@pytest.mark.anyio
async def test_a_right_solution_is_timed_against_the_baseline(evaluate: Evaluate) -> None:
    result = await evaluate(cpp(LOOP), "full")
    assert (result.status, result.stage, result.passed, result.total) == (Status.PASSED, Stage.DONE, 1, 1)
    assert result.rounds == 4 and result.speedup and result.speedup.low <= result.speedup.value <= result.speedup.high
    (measured,) = result.measurements
    assert measured.pairs >= 8 and measured.checked >= 1 and measured.aa_factor and measured.aa_factor >= 1.0
    assert result.worst == measured.speedup.value if measured.speedup else False


@pytest.mark.anyio
async def test_a_solution_that_works_twenty_times_as_much_is_slower(evaluate: Evaluate) -> None:
    result = await evaluate(cpp(VOLATILE), "full")
    assert result.status is Status.PASSED and result.verdict is Verdict.SLOWER and result.below_one == 1


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("solution", "status", "cause"),
    [
        (cpp("for (int64_t i = 0; i < rows * columns; ++i) y[i] = x[i];"), Status.INCORRECT_NUMERICAL, "wrong_values"),
        (cpp("(void)x; (void)y;"), Status.INCORRECT_NUMERICAL, "output_not_written"),
        (cpp(LOOP.replace("< rows * columns", "< rows * columns - 1")), Status.INCORRECT_NUMERICAL, "nan_in_output"),
        (cpp(LOOP.replace("< rows * columns", "<= rows * columns")), Status.RUNTIME_ERROR, "out_of_bounds_write"),
        (cpp(LOOP + " const_cast<float*>(x)[0] = 1;"), Status.RUNTIME_ERROR, "signal_11"),
        (python("def scale(x, factor, y):\n    y.copy_(x.mul_(factor))\n"), Status.RUNTIME_ERROR, "signal_11"),
        (cpp("*(volatile int*)8 = 1;"), Status.RUNTIME_ERROR, "signal_11"),
        (cpp("volatile bool go = true; while (go) {}"), Status.TIMEOUT, "time_limit"),
        (cpp(LOOP + " static int n = 0; y[0] *= 1 + 3e-7f * n++;"), Status.INCORRECT_NUMERICAL, "not_repeatable"),
        (python("import os\n\ndef scale(x, factor, y):\n    os._exit(0)\n"), Status.RUNTIME_ERROR, "exit_early"),
        (python("def scale(x, factor, y):\n    raise ValueError('no')\n"), Status.RUNTIME_ERROR, "exception"),
        (python("raise SystemExit(0)\ndef scale(x, factor, y): ...\n"), Status.RUNTIME_ERROR, "exception"),
    ],
)
async def test_a_bad_solution_is_a_result_with_a_cause(
    evaluate: Evaluate, solution: Solution, status: Status, cause: str
) -> None:
    result = await evaluate(solution)
    assert (result.status, result.cause) == (status, cause), result.detail
    assert result.detail and result.speedup is None


@pytest.mark.anyio
async def test_a_solution_that_prints_200_kb_and_bad_bytes_still_passes(evaluate: Evaluate) -> None:
    noisy = BASELINE + "    import sys; sys.stdout.buffer.write(b'\\xff\\xfe' * 100_000); sys.stdout.flush()\n"
    assert (await evaluate(python(noisy))).status is Status.PASSED


@pytest.mark.anyio
async def test_returned_tensors_must_have_the_exact_type(evaluate: Evaluate) -> None:
    good = python("def scale(x, factor):\n    return x * factor\n", destination_passing_style=False)
    wide = python("def scale(x, factor):\n    return (x * factor).double()\n", destination_passing_style=False)
    flat = python("def scale(x, factor):\n    return (x * factor).flatten()\n", destination_passing_style=False)
    got = [(await evaluate(solution)).status for solution in (good, wide, flat)]
    assert got == [Status.PASSED, Status.INCORRECT_DTYPE, Status.INCORRECT_SHAPE]


@pytest.mark.anyio
async def test_an_answer_cached_by_address_is_caught_on_new_content(evaluate: Evaluate) -> None:
    cheat = BASELINE.replace("def scale", "memo = {}\n\ndef scale").replace(
        "torch.mul(x, factor, out=y)",
        "key = x.data_ptr()\n    if key not in memo: memo[key] = x * factor\n    y.copy_(memo[key])",
    )
    result = await evaluate(python(cheat), "full")
    assert result.status in (Status.INCORRECT_NUMERICAL, Status.REWARD_HACK), result


@pytest.mark.anyio
async def test_work_left_to_a_thread_after_the_return_is_caught(evaluate: Evaluate) -> None:
    lazy = (
        "import threading, time, torch\n\n"
        "def work(x, factor, y):\n    time.sleep(0.005)\n    torch.mul(x, factor, out=y)\n"
        "\ndef scale(x, factor, y):\n    threading.Thread(target=work, args=(x, factor, y)).start()\n"
    )
    assert (await evaluate(python(lazy))).status is not Status.PASSED


@pytest.mark.anyio
async def test_the_judge_serves_the_next_solution_after_a_crash(evaluate: Evaluate) -> None:
    assert (await evaluate(cpp("*(volatile int*)8 = 1;"))).cause == "signal_11"
    result = await evaluate(cpp(LOOP))
    assert result.status is Status.PASSED, result.detail


@pytest.mark.anyio
async def test_a_stopped_worker_clock_is_caught_by_the_judges_own(evaluate: Evaluate) -> None:
    cheat = (
        "import sys, torch\n\nsys.modules['toolkits.core.judge.worker'].process_time_ns = lambda: 0\n\n"
        "def scale(x, factor, y):\n    for _ in range(50):\n        torch.mul(x, factor, out=y)\n"
    )
    result = await evaluate(python(cheat), "full")
    assert (result.status, result.cause) == (Status.REWARD_HACK, "clock_mismatch"), result.detail
