"""Tasks with a plan step: what a plan may read, what run is given of it, and the two figures of each evaluation."""

import json
import shutil
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from mcp_server.folders import read_solution, read_task
from tests.toolkits.conftest import BASELINE, LOOP, cpp, python
from toolkits.core import profiling
from toolkits.core.errors import HarnessError, InvalidInput
from toolkits.core.judge.client import Judge
from toolkits.core.judge.clocks import Spent
from toolkits.core.judge.request import EvaluationRequest
from toolkits.core.judge.timed import Timed
from toolkits.core.schema import BenchmarkResult, CompileResult, Json, Plan, Solution, Status, Task, Workload
from toolkits.core.signature import c_header, c_plan_signature, c_signature, python_plan_signature, python_signature
from toolkits.core.toolkit import get_toolkit

pytestmark = pytest.mark.anyio
FOLDER = Path(__file__).parents[2] / "cheats/task/sorted_rows"
PLAN = 'plan: {inputs: [key], workspace: "4*rows"}'
PYTHON = """
import torch

def order(key):
    return key.sort(stable=True).indices

def run(plan, x, key, y):
    torch.exp(x[plan], out=y)
"""
RETURNS = PYTHON.replace(
    "def run(plan, x, key, y):\n    torch.exp(x[plan], out=y)", "def run(plan, x, key): return x[plan].exp()"
)


class Bed:
    """Judges solutions on one warm judge."""

    def __init__(self, judge: Judge, folder: Path) -> None:
        self._judge, self._folder = judge, folder

    async def built(self, task: Task, solution: Solution) -> CompileResult:
        return await get_toolkit(solution.toolkit).compile(task, solution, self._folder / "builds")

    async def judged(self, task: Task, candidate: Solution, baseline: Solution, mode: str = "full") -> BenchmarkResult:
        builds = [await self.built(task, solution) for solution in (candidate, baseline)]
        assert all(build.ok for build in builds), builds[0].log
        request: Json = {"task": task, "candidate": candidate, "candidate_build": builds[0], "mode": mode}
        request |= {"baseline": baseline, "baseline_name": "baseline", "baseline_build": builds[1]}
        return await self._judge.evaluate(EvaluationRequest.model_validate(request), lambda what, share: None)


@pytest.fixture(scope="module")
async def judge() -> AsyncGenerator[Judge]:
    judge = Judge()
    yield judge
    await judge.close()


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def bed(judge: Judge, tmp_path: Path) -> Bed:
    return Bed(judge, tmp_path)


@pytest.fixture
def rows() -> Task:
    """The corpus's task with a plan step."""
    return read_task(FOLDER)


def shipped(name: str) -> Solution:
    return read_solution(FOLDER / "solutions" / name, "sorted_rows")


def in_python(text: str, **changes: object) -> Solution:
    fields: Json = {"task": "sorted_rows", "toolkit": "python", "sources": {"main.py": text}}
    fields |= {"entry_point": "main.py::run", "plan_entry_point": "main.py::order"}
    return Solution.model_validate(fields | changes)


# --- both numbers -------------------------------------------------------------------------------------------------


async def test_a_plan_counts_and_the_run_alone_is_shown_beside_it(bed: Bed, rows: Task) -> None:
    result = await bed.judged(rows, shipped("planned"), shipped("plain"))
    assert result.status is Status.PASSED and result.regime.startswith("plan_run")
    assert result.run_only and result.speedup and result.run_only.value > result.speedup.value
    for measured in result.measurements:
        assert measured.plan_us and measured.latency_us and 0 < measured.plan_us < measured.latency_us
        assert measured.baseline_plan_us == 0
        # Against a baseline that plans nothing, each pair's ratio is larger when the plan is left out.
        assert measured.run_only and measured.speedup and measured.run_only.low > measured.speedup.low


async def test_a_solution_without_a_plan_stands_against_one_with(bed: Bed, rows: Task) -> None:
    result = await bed.judged(rows, shipped("plain"), shipped("planned"))
    assert result.status is Status.PASSED
    assert result.run_only and result.speedup and result.run_only.value < result.speedup.value
    for measured in result.measurements:
        assert measured.plan_us == 0 and measured.baseline_plan_us
        assert measured.cold and measured.cold.latency_us > 0


@pytest.mark.parametrize("solution", [in_python(PYTHON), in_python(RETURNS, destination_passing_style=False)])
async def test_a_python_plan_returns_what_its_run_is_given(bed: Bed, rows: Task, solution: Solution) -> None:
    result = await bed.judged(rows, solution, shipped("planned"))
    assert result.status is Status.PASSED, result.detail
    assert all(measured.plan_us for measured in result.measurements)


async def test_without_a_plan_step_both_figures_are_one(bed: Bed, task: Task) -> None:
    result = await bed.judged(task, cpp(LOOP), python(BASELINE))
    assert result.status is Status.PASSED and result.run_only is None
    assert "no plan step, so plan included is the same" in result.regime
    assert [(m.plan_us, m.baseline_plan_us, m.run_only) for m in result.measurements] == [(None, None, None)]


# --- what a plan may read, and what it leaves -----------------------------------------------------------------------


@pytest.fixture
def scale(task: Task) -> Task:
    """y = factor * x, where the factor is known before the vector: a scalar for a plan."""
    return task.model_copy(update={"plan": Plan(inputs=["factor"], workspace="4"), "content_hash": "scale with a plan"})


SCALAR = """
#include "task.h"
extern "C" void order(float factor, void* workspace, int64_t rows, int64_t columns) {
  *static_cast<float*>(workspace) = factor;
}
extern "C" void scale(const float* x, float factor, float* y, const void* workspace, int64_t rows, int64_t columns) {
  for (int64_t i = 0; i < rows * columns; ++i) y[i] = x[i] * *static_cast<const float*>(workspace);
}
"""


def with_plan(solution: Solution, text: str) -> Solution:
    file = solution.entry_file
    return solution.model_copy(update={"sources": {file: text}, "plan_entry_point": f"{file}::order"})


async def test_scalars_reach_a_plan_and_the_workspace_its_run(bed: Bed, scale: Task) -> None:
    assert (await bed.judged(scale, with_plan(cpp(""), SCALAR), python(BASELINE), "check")).status is Status.PASSED
    text = "def order(factor): return factor\ndef scale(plan, x, factor, y): y.copy_(x * plan)\n"
    assert (await bed.judged(scale, with_plan(python(""), text), python(BASELINE), "check")).status is Status.PASSED


async def test_a_plan_finds_poison_in_what_it_may_not_read(bed: Bed, scale: Task) -> None:
    """The second round of a size has new values at an address that the plan knows from the first."""
    text = """
kept = {}
def order(factor): return {shape: x * factor for shape, x in kept.items()}
def scale(plan, x, factor, y):
    y.copy_(plan[x.shape] if x.shape in plan else x * factor)
    kept[x.shape] = x
"""
    result = await bed.judged(scale, with_plan(python(""), text), python(BASELINE), "check")
    assert result.status is Status.INCORRECT_NUMERICAL and "large" in result.workload


async def test_what_goes_wrong_in_a_plan_is_the_candidates_fault(bed: Bed, scale: Task) -> None:
    run = "\ndef scale(plan, x, factor, y): y.copy_(x * factor)\n"
    for body, status, cause in (
        ("raise ValueError('no order')", Status.RUNTIME_ERROR, "exception"),
        ("while True: pass", Status.TIMEOUT, "time_limit"),
    ):
        result = await bed.judged(
            scale, with_plan(python(""), f"def order(factor):\n    {body}{run}"), python(BASELINE), "check"
        )
        assert (result.status, result.cause) == (status, cause)


async def test_what_goes_wrong_in_the_baselines_plan_is_not(bed: Bed, scale: Task) -> None:
    broken = "def order(factor): raise ValueError('no order')\ndef scale(plan, x, factor, y): y.copy_(x * factor)\n"
    with pytest.raises(HarnessError, match=r"baseline failed .*no order"):
        await bed.judged(scale, python(BASELINE), with_plan(python(""), broken))


# --- clocks: what they make of given times --------------------------------------------------------------------------


def spent(us: float, *, hidden_us: float = 0.0, idle_us: float = 5.0, wall_us: float = 0.0) -> Spent:
    """A request of which the worker's clock shows `us`; asking takes 20 us more."""
    cpu, outer = round(us * 1e3), round((us + hidden_us + 20) * 1e3)
    return Spent(cpu, outer, outer + 10_000 + round(wall_us * 1e3), idle_ns=round(idle_us * 1e3))


def timed(candidate: Spent, baseline: Spent) -> Timed:
    result = Timed(Workload(uuid="w", axes={}), has_plan=True)
    for _ in range(8):
        result.add(candidate, baseline, baseline)
    result.cold.append((candidate, baseline))
    return result


PLANNED = replace(spent(600), plan=spent(400))


def test_times_are_of_plan_and_run_and_the_runs_are_apart() -> None:
    measured = timed(PLANNED, spent(2000)).measurement()
    assert (measured.latency_us, measured.plan_us, measured.baseline_plan_us) == (1000, 400, 0)
    assert measured.speedup and measured.speedup.value == pytest.approx(2.0)
    assert measured.run_only and measured.run_only.value == pytest.approx(2000 / 600)
    assert measured.cold and measured.cold.latency_us == pytest.approx(1000 + 5) and measured.cold.ratio < 2


def test_what_a_plan_uses_beyond_its_claim_is_seen() -> None:
    liar = replace(spent(600), plan=spent(1, hidden_us=399))
    assert timed(liar, spent(2000)).claims_lie() and not timed(PLANNED, spent(2000)).claims_lie()
    assert timed(PLANNED, spent(2000)).claims_hold()


def test_what_a_process_does_between_plan_and_run_is_counted() -> None:
    busy = replace(spent(600, idle_us=405), plan=spent(1))
    result = timed(busy, spent(2000))
    assert result.idle_ns() == 400_000 and result.claims_lie()  # beyond the baseline's five
    assert result.measurement().latency_us == pytest.approx(600 + 1 + 400)


def test_a_plan_that_waits_for_others_is_seen_though_the_run_is_long() -> None:
    waits = replace(spent(20_000), plan=spent(10, wall_us=900))
    assert timed(waits, spent(20_000)).clocks_disagree()


# --- errors -----------------------------------------------------------------------------------------------------------


async def test_a_plan_for_a_task_without_that_step_is_refused(bed: Bed, task: Task) -> None:
    for solution in (with_plan(cpp(""), SCALAR), with_plan(python(""), BASELINE)):
        with pytest.raises(InvalidInput, match="task scale has no plan step: leave out plan_entry_point"):
            await bed.built(task, solution)


async def test_a_build_says_which_function_is_missing_and_how_it_is_declared(bed: Bed, scale: Task) -> None:
    build = await bed.built(scale, with_plan(cpp(""), SCALAR.replace("void order", "void other")))
    assert not build.ok and c_plan_signature(scale, "order") in build.diagnostics[0].message
    build = await bed.built(scale, with_plan(python(""), "def scale(plan, x, factor, y): pass\n"))
    assert not build.ok and "define `def order(factor: float) -> object`" in build.diagnostics[0].message
    build = await bed.built(scale, with_plan(python(""), "def order(): pass\ndef scale(x, factor, y): pass\n"))
    messages = [diagnostic.message for diagnostic in build.diagnostics]
    assert messages == [
        "scale takes 3 arguments, the task passes 4: plan, x, factor, y",
        "order takes 0 arguments, the task passes 1: factor",
    ]


def test_a_plan_entry_point_is_a_function_of_the_solution_and_not_its_run() -> None:
    for wrong, why in (("main.py", "must be"), ("other.py::order", "must be"), ("main.py::run", "two functions")):
        with pytest.raises(ValueError, match=why):
            in_python(PYTHON, plan_entry_point=wrong)


def test_the_id_knows_the_plan_and_without_one_is_what_it_was() -> None:
    assert in_python(PYTHON).id != in_python(PYTHON, plan_entry_point="").id
    assert "plan_entry_point" not in str(in_python(PYTHON, plan_entry_point="").model_dump(exclude_defaults=True))
    assert python(BASELINE).id == "8788f5b0e695e320"


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        ({"inputs": ["keys"]}, "there is no input 'keys': the inputs are x, key"),
        ({"inputs": ["key", "key"]}, "'key' is there 2 times"),
        ({"inputs": ["x", "key"]}, "could do the whole run"),
        ({"inputs": []}, "plan.inputs"),
        ({"inputs": ["key"], "workspace": "4*lines"}, "axis expression 'lines'"),
        ({"inputs": ["key"], "workspace": "rows - 1000"}, "is -991 bytes for"),
        ({"inputs": ["key"], "workspace": "rows * 1000000000"}, "bytes for"),
        ({"inputs": ["key"], "room": 4}, "room"),
    ],
)
def test_a_plan_step_that_cannot_be_is_refused_when_the_task_is_read(tmp_path: Path, plan: Json, why: str) -> None:
    folder = tmp_path / "sorted_rows"
    shutil.copytree(FOLDER, folder)
    text = (folder / "task.yaml").read_text(encoding="utf-8")
    assert PLAN in text
    (folder / "task.yaml").write_text(text.replace(PLAN, f"plan: {json.dumps(plan)}"), encoding="utf-8")
    with pytest.raises(InvalidInput, match=why):
        read_task(folder)


# --- what authors read, and profiles --------------------------------------------------------------------------------


def test_the_signatures_show_the_plan_and_what_run_gets_of_it(rows: Task) -> None:
    plan = 'extern "C" void order(const int32_t* key, void* workspace, int64_t rows, int64_t columns)'
    run = (
        'extern "C" void run(const float* x, const int32_t* key, float* y, const void* workspace, '
        "int64_t rows, int64_t columns)"
    )
    assert c_plan_signature(rows, "order") == plan and c_signature(rows, "run", planned=True) == run
    assert f"{plan};\n{run};" in c_header(rows, "run", "order")
    assert "workspace" not in c_header(rows, "run")
    assert python_plan_signature(rows) == "def plan(key: torch.Tensor) -> object"
    assert python_signature(rows, planned=True).startswith("def run(plan: object, x: torch.Tensor,")


async def test_a_profile_plans_before_the_run_that_it_counts(rows: Task, tmp_path: Path) -> None:
    small = rows.workloads[1]
    native = await profiling.profile_solution(rows, shipped("planned"), small, tmp_path / "builds", tmp_path / "native")
    assert native.instructions and any("plan ran before it" in note for note in native.notes)
    assert not any("sort" in line.source for line in native.hot_lines)
    sampled = await profiling.profile_solution(
        rows, in_python(PYTHON), small, tmp_path / "builds", tmp_path / "sampled"
    )
    assert sampled.duration_us, sampled.verdict
