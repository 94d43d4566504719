"""Tasks that are at fault: the result says so with the reason, no candidate is blamed, and the judge goes on."""

import json
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import anyio
import pytest

from tests.toolkits.conftest import BASELINE, REFERENCE, SPEC, python
from toolkits.core.errors import HarnessError
from toolkits.core.judge.client import EvaluationCancelled, Judge
from toolkits.core.judge.request import EvaluationRequest
from toolkits.core.schema import BenchmarkResult, DType, Json, Solution, Status, Task, Verdict, Workload
from toolkits.core.signature import C_TYPES
from toolkits.core.toolkit import get_toolkit

pytestmark = pytest.mark.anyio
EXPECTED = '{"y": inputs["x"].double() * inputs["factor"]}'
REFRESH = REFERENCE[REFERENCE.index("def refresh") :]


class Bed:
    """Judges solutions of any task on one warm judge."""

    def __init__(self, judge: Judge, folder: Path) -> None:
        self._judge, self._folder, self._tasks = judge, folder, 0

    def task(self, reference: str = REFERENCE, sizes: dict[str, int] | None = None, **changes: object) -> Task:
        self._tasks += 1
        folder = self._folder / f"scale{self._tasks}"
        folder.mkdir()
        (folder / "reference.py").write_text(reference, encoding="utf-8")
        workloads = [Workload(uuid="one", axes=sizes or {"rows": 64, "columns": 512})]
        spec = json.loads(json.dumps(SPEC | changes))
        return Task.model_validate(spec | {"folder": folder, "content_hash": str(folder), "workloads": workloads})

    async def judged(
        self,
        task: Task,
        candidate: Solution | None = None,
        baseline: str = BASELINE,
        mode: str = "full",
        on_progress: Callable[[], None] = lambda: None,
    ) -> BenchmarkResult:
        first = candidate or python(BASELINE + "    # the candidate\n")
        second = python(baseline)
        builds = [await get_toolkit(s.toolkit).compile(task, s, self._folder / "builds") for s in (first, second)]
        assert all(build.ok for build in builds), builds[0].log
        request: Json = {"task": task, "candidate": first, "candidate_build": builds[0], "mode": mode}
        request |= {"baseline": second, "baseline_name": "torch", "baseline_build": builds[1]}
        return await self._judge.evaluate(EvaluationRequest.model_validate(request), lambda what, share: on_progress())


@pytest.fixture(scope="module")
async def judge() -> AsyncGenerator[Judge]:
    judge = Judge()
    yield judge
    await judge.close()


@pytest.fixture
def bed(judge: Judge, tmp_path: Path) -> Bed:
    return Bed(judge, tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (EXPECTED, "1 / 0", "ZeroDivisionError"),
        (EXPECTED, "exit()", "SystemExit"),
        (EXPECTED, '{"z": inputs["x"]}', "returns no tensor 'y'"),
        (EXPECTED, "None", "reference"),
        (EXPECTED, '{"y": (inputs["x"].double() * inputs["factor"])[:1]}', "y has shape"),
        (EXPECTED, '{"y": inputs["x"].double() * float("nan")}', "NaN"),
        ('"factor": 2.5', '"factor": torch.tensor(2.5)', "factor"),
        ('"factor": 2.5', '"other": 2.5', "factor"),
        ("x = torch.randn(axes", "x = torch.randn(1, axes", "x has shape"),
        ("generator=generator)\n    return", "generator=generator).double()\n    return", "x is torch.float64"),
        ("    x = torch", "    raise ValueError('no luck')\n    x = torch", "no luck"),
        ("import torch", "import torch_that_is_not_there", "loading"),
        ("def reference", "def another", "loading"),
    ],
)
async def test_a_reference_that_cannot_judge_is_an_invalid_reference(bed: Bed, old: str, new: str, reason: str) -> None:
    assert old in REFERENCE
    for _ in range(2):
        result = await bed.judged(bed.task(REFERENCE.replace(old, new)))
        assert result.status is Status.INVALID_REFERENCE and reason in result.detail, result
    assert (await bed.judged(bed.task())).status is Status.PASSED


@pytest.mark.parametrize(
    ("refresh", "reason"),
    [
        ("def refresh(inputs, draw):\n    raise ValueError('no luck')\n", "no luck"),
        ("def refresh(inputs, draw):\n    inputs['x'] = inputs['x'] * 2\n", "another tensor in place of x"),
        ("def refresh(inputs, draw):\n    inputs['factor'] = 'two'\n", "no Python number 'factor'"),
        ("def refresh(inputs, draw):\n    del inputs['x']\n", "x"),
        ("def refresh(inputs, draw):\n    inputs['x'].fill_(float('nan'))\n", "holds NaN"),
    ],
)
async def test_a_refresh_that_cannot_judge_is_an_invalid_reference(bed: Bed, refresh: str, reason: str) -> None:
    result = await bed.judged(bed.task(REFERENCE.replace(REFRESH, refresh)))
    assert result.status is Status.INVALID_REFERENCE and reason in result.detail, result
    assert (await bed.judged(bed.task())).status is Status.PASSED


async def test_a_refresh_may_change_scalars(bed: Bed) -> None:
    changing = REFERENCE.replace(REFRESH, REFRESH + "    inputs['factor'] = float(draw.integers(9, ())) + 1\n")
    assert (await bed.judged(bed.task(changing))).status is Status.PASSED
    stale = "known = []\n" + BASELINE.replace("    torch", "    known.append(factor)\n    factor = known[0]\n    torch")
    result = await bed.judged(bed.task(changing), python(stale))
    assert (result.status, result.cause) == (Status.REWARD_HACK, "stale_content"), result


async def test_a_task_without_a_refresh_is_timed_on_newly_drawn_content(bed: Bed) -> None:
    result = await bed.judged(bed.task(REFERENCE.replace(REFRESH, "")))
    assert result.status is Status.PASSED, result
    cheat = BASELINE.replace("def scale", "seen = {}\n\ndef scale").replace(
        "torch.mul(x, factor, out=y)", "y.copy_(seen.setdefault(x.data_ptr(), x * factor))"
    )
    assert (await bed.judged(bed.task(REFERENCE.replace(REFRESH, "")), python(cheat))).status is not Status.PASSED


@pytest.mark.parametrize("body", ["raise ValueError('no luck')", "import os; os._exit(1)", "y.zero_()"])
async def test_a_baseline_that_fails_is_named_and_the_judge_goes_on(bed: Bed, body: str) -> None:
    with pytest.raises(HarnessError, match="baseline"):
        await bed.judged(bed.task(), baseline=f"def scale(x, factor, y):\n    {body}\n")
    assert (await bed.judged(bed.task())).status is Status.PASSED


async def test_a_short_kernel_gains_nothing_by_a_stopped_clock(bed: Bed) -> None:
    stopped = "import sys\nsys.modules['toolkits.core.judge.worker'].process_time_ns = lambda: 0\n"
    result = await bed.judged(bed.task(sizes={"rows": 8, "columns": 512}), python(stopped + BASELINE))
    assert result.verdict is not Verdict.FASTER and result.speedup and result.speedup.value < 10, result


async def test_a_cancelled_evaluation_ends_and_the_judge_stays_warm(bed: Bed, judge: Judge) -> None:
    endless = python("def scale(x, factor, y):\n    while True: pass\n")
    task = bed.task(call_timeout_s=600)
    async with anyio.create_task_group() as group:

        async def expect_the_end() -> None:
            with pytest.raises(EvaluationCancelled):
                await bed.judged(task, endless, on_progress=checking.set)

        checking = anyio.Event()
        group.start_soon(expect_the_end)
        await checking.wait()
        await judge.cancel()
    pid = _judge_pids()
    assert (await bed.judged(bed.task())).status is Status.PASSED and _judge_pids() == pid


TYPED = """
import torch

def make_inputs(axes, distribution, generator):
    n = axes["n"]
    x = torch.randint(0, 2, (n,), generator=generator).to(torch.DTYPE)
    return {"x": x, "s": SCALAR}

def reference(inputs):
    return {"y": RESULT}
"""
TYPED_CPP = """
#include "task.h"
extern "C" void run(const TYPE* x, TYPE s, TYPE* y, int64_t n) { for (int64_t i = 0; i < n; ++i) y[i] = BODY; }
"""


def _typed(bed: Bed, dtype: str, scalar: str, result: str = '-inputs["x"]', n: int = 300) -> Task:
    reference = TYPED.replace("DTYPE", dtype).replace("SCALAR", scalar).replace("RESULT", result)
    return bed.task(
        reference,
        {"n": n},
        axes={"n": {"type": "var"}},
        inputs={"x": {"shape": ["n"], "dtype": dtype}, "s": {"shape": None, "dtype": dtype}},
        outputs={"y": {"shape": ["n"], "dtype": dtype}},
        checks=[{"output": "y", "rule": "allclose", "tolerance": 0}],
        distributions={"any": {"description": "zeros and ones"}},
        correctness=[{"n": 5}],
    )


def _run(text: str, toolkit: str = "python") -> Solution:
    file = "main.py" if toolkit == "python" else "main.cpp"
    return Solution(task="scale", toolkit=toolkit, entry_point=f"{file}::run", sources={file: text})


SET = "def run(x, s, y):\n    y.zero_()\n    y[x == 0] = s\n"


@pytest.mark.parametrize(
    ("dtype", "scalar"),
    [
        ("float32", "2.5"),
        ("float64", "2.5"),
        ("float16", "2.5"),
        ("bfloat16", "2.5"),
        ("int32", "-1"),
        ("int64", "1 << 62"),
        ("bool", "True"),
    ],
)
async def test_every_type_crosses_as_tensor_and_as_scalar(bed: Bed, dtype: DType, scalar: str) -> None:
    want = f'torch.where(inputs["x"] == 0, torch.tensor({scalar}, dtype=torch.{dtype}), torch.zeros_like(inputs["x"]))'
    text = TYPED_CPP.replace("TYPE", C_TYPES[dtype]).replace("BODY", "x[i] == 0 ? s : 0")
    for candidate in (_run(SET + "    # mine\n"), _run(text, "cpp")):
        result = await bed.judged(_typed(bed, dtype, scalar, want), candidate, SET.replace("run", "scale"))
        assert result.status is Status.PASSED, result


@pytest.mark.parametrize("dtype", ["int32", "int64"])
async def test_an_output_of_minus_ones_is_right_where_the_reference_has_them(bed: Bed, dtype: str) -> None:
    fill = "import torch\n\ndef run(x, s, y):\n    torch.neg(x, out=y)\n"
    task = _typed(bed, dtype, "1", '-inputs["x"]')
    assert (await bed.judged(task, _run(fill), mode="check")).status is Status.PASSED
    nothing = await bed.judged(task, _run("def run(x, s, y): ...\n"), mode="check")
    assert (nothing.status, nothing.cause) == (Status.INCORRECT_NUMERICAL, "output_not_written")


async def test_a_bool_output_that_is_half_written_or_holds_no_bool_is_refused(bed: Bed) -> None:
    task = _typed(bed, "bool", "True", '~inputs["x"]')
    half = TYPED_CPP.replace("TYPE", "uint8_t").replace("y[i] = BODY", "if (i) y[i] = !x[i]")
    twos = TYPED_CPP.replace("TYPE", "uint8_t").replace("BODY", "2")
    for text in (half, twos):
        result = await bed.judged(task, _run(text, "cpp"), mode="check")
        assert result.status is Status.INCORRECT_NUMERICAL, result


async def test_tensors_without_elements_are_judged_like_others(bed: Bed) -> None:
    text = TYPED_CPP.replace("TYPE", "float").replace("BODY", "-x[i]")
    for candidate in (_run("import torch\n\ndef run(x, s, y):\n    torch.neg(x, out=y)\n"), _run(text, "cpp")):
        task = _typed(bed, "float32", "1.0", n=0)
        task = task.model_copy(update={"correctness": [{"n": 0}, {"n": 3}]})
        result = await bed.judged(task, candidate, mode="check")
        assert result.status is Status.PASSED, result


async def test_many_tasks_in_turn_leave_no_descriptor(bed: Bed, judge: Judge) -> None:
    counts: list[int] = []
    for _ in range(18):
        assert (await bed.judged(bed.task())).status is Status.PASSED
        counts.append(_judge_descriptors())
    # The next worker and a box are started after the answer, so that some come and go; a leak would be one a task.
    assert min(counts[10:]) - min(counts[2:10]) < 8, counts


def _judge_pids() -> list[str]:
    own = [pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()]
    return [pid for pid in own if b"toolkits.core.judge\0" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def _judge_descriptors() -> int:
    return sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in _judge_pids())
