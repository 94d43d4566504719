"""Every shipped task judges rightly: its own solutions and a faithful second form pass, every mutant is refused."""

import ast
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from mcp_server.workspace import Workspace
from toolkits.core.judge.client import Judge
from toolkits.core.judge.request import EvaluationRequest
from toolkits.core.schema import BenchmarkResult, Solution, Status, Task
from toolkits.core.toolkit import get_toolkit

KERNELS = Path(__file__).parents[2] / "kernels"
TASKS = sorted(path.parent.name for path in KERNELS.glob("*/task.yaml"))


def _mutants(task: str) -> list[str]:
    """The names in MUTANTS of the task's mutants.py, without running it."""
    for node in ast.parse((KERNELS / task / "mutants.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "MUTANTS":
            return list(ast.literal_eval(node.value))
    raise AssertionError(f"{task}/mutants.py declares no MUTANTS")


def _shipped(task: str) -> list[str]:
    return sorted(path.parent.name for path in (KERNELS / task).glob("solutions/*/solution.yaml"))


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace(tmp_path_factory.mktemp("root"))


@pytest.fixture(scope="module")
async def judge() -> AsyncGenerator[Judge]:
    judge = Judge()
    yield judge
    await judge.close()


async def _check(workspace: Workspace, judge: Judge, task: Task, candidate: Solution) -> BenchmarkResult:
    baseline = workspace.solution(task, task.baselines[0])
    builds = [await get_toolkit(s.toolkit).compile(task, s, workspace.builds) for s in (candidate, baseline)]
    assert all(build.ok for build in builds), builds[0].log
    request = EvaluationRequest(
        task=task,
        candidate=candidate,
        candidate_build=builds[0],
        baseline=baseline,
        baseline_name=task.baselines[0],
        baseline_build=builds[1],
        mode="check",
    )
    return await judge.evaluate(request, lambda what, share: None)


def _function(task: Task, name: str) -> Solution:
    """A function of the task's mutants.py as a solution."""
    source = (task.folder / "mutants.py").read_text(encoding="utf-8")
    entry = f"mutants.py::{name}"
    return Solution(task=task.name, toolkit="python", entry_point=entry, sources={"mutants.py": source})


def test_the_five_first_tasks_are_shipped() -> None:
    assert {"rmsnorm", "kmeans_assign", "kda_prefill", "relpos_txl_fwd", "matmul"} <= set(TASKS)


@pytest.mark.anyio
@pytest.mark.parametrize(("name", "solution"), [(task, solution) for task in TASKS for solution in _shipped(task)])
async def test_every_shipped_solution_passes_its_checks(
    workspace: Workspace, judge: Judge, name: str, solution: str
) -> None:
    task = workspace.task(name)
    candidate = workspace.solution(task, solution)
    if missing := get_toolkit(candidate.toolkit).missing():
        pytest.skip(f"{candidate.toolkit} needs {missing}")
    result = await _check(workspace, judge, task, candidate)
    assert result.status is Status.PASSED, f"{result.cause} {result.detail}"


@pytest.mark.anyio
@pytest.mark.parametrize("name", TASKS)
async def test_a_faithful_second_implementation_is_accepted(workspace: Workspace, judge: Judge, name: str) -> None:
    task = workspace.task(name)
    result = await _check(workspace, judge, task, _function(task, "faithful"))
    assert result.status is Status.PASSED, f"{result.cause} {result.workload} {result.detail}"


@pytest.mark.anyio
@pytest.mark.parametrize(("name", "mutant"), [(task, mutant) for task in TASKS for mutant in _mutants(task)])
async def test_every_mutant_is_rejected(workspace: Workspace, judge: Judge, name: str, mutant: str) -> None:
    task = workspace.task(name)
    result = await _check(workspace, judge, task, _function(task, mutant))
    assert result.status is Status.INCORRECT_NUMERICAL, f"{mutant} got {result.status} {result.cause} {result.detail}"


@pytest.mark.anyio
@pytest.mark.parametrize("name", TASKS)
async def test_constant_answers_are_rejected(workspace: Workspace, judge: Judge, name: str) -> None:
    task = workspace.task(name)
    arguments = ", ".join([*task.inputs, *task.outputs])
    for constant in (0, 1):
        fill = "\n".join(f"    {output}.fill_({constant})" for output in task.outputs)
        text = f"def run({arguments}):\n{fill}\n"
        zeros = Solution(task=name, toolkit="python", entry_point="main.py::run", sources={"main.py": text})
        assert (await _check(workspace, judge, task, zeros)).status is Status.INCORRECT_NUMERICAL
