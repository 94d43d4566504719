"""Each task's mutants, written in C++, CUDA, HIP, OpenCL and Triton, are rejected there by the judge.

Each is an edit of a shipped solution, which itself must pass. What is written where, and why not, is printed.
"""

import ast
import os
import shutil
import sys
from collections.abc import AsyncGenerator
from importlib import import_module
from pathlib import Path

import pytest

from mcp_server.workspace import Workspace
from tests.toolkits.gpu.mutants.edits import KERNELS, Written
from tests.toolkits.gpu.mutants.together import CHOICE, together
from toolkits.core.gpu.emulate import NOT_TIMED, emulated_library
from toolkits.core.judge.client import Judge
from toolkits.core.judge.request import EvaluationRequest
from toolkits.core.schema import BenchmarkResult, CompileResult, Solution, Status, Task
from toolkits.core.signature import device_header
from toolkits.core.toolkit import get_toolkit

pytestmark = pytest.mark.anyio
SIZES = {
    "rmsnorm": {"rows": 9, "cols": 151},
    "kmeans_assign": {"batch": 2, "points": 101, "centroids": 67, "dim": 33},
    "kda_prefill": {"tokens": 150, "heads": 2, "dim": 64, "sequences": 4},
    "relpos_txl_fwd": {"heads": 2, "tokens": 70},
}
"""One small size a task, at which every mutant shows. The judge draws no others here: all solutions, at all sizes, are
checked in tests/kernels."""
ITSELF = "the shipped solution"
SLOW = ("opencl", "triton")
"""A worker of these takes half a second to load: of every task but the first, every fourth mutant is judged."""
EVERY = bool(os.environ.get("KERNEL_LAB_EVERY_MUTANT"))
WRITTEN: list[Written] = [one for task in SIZES for one in import_module(f"tests.toolkits.gpu.mutants.{task}").WRITTEN]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace(tmp_path_factory.mktemp("root"))


@pytest.fixture(scope="module")
async def judge() -> AsyncGenerator[Judge]:
    judge = Judge()
    yield judge
    await judge.close()


async def _build(task: Task, solution: Solution, folder: Path) -> CompileResult:
    """By its toolkit; for devices, what runs without one and nothing else."""
    toolkit = get_toolkit(solution.toolkit)
    if solution.toolkit not in ("cuda", "hip"):
        if missing := toolkit.missing():
            pytest.skip(f"this machine lacks {missing}")
        return await toolkit.compile(task, solution, folder)
    folder.mkdir()
    dialect = "cuda" if solution.toolkit == "cuda" else "hip"
    header = device_header(task, dialect, solution.entry_function)
    built = await emulated_library(folder, task, solution, dialect, header)
    assert built.library, built.why_not()
    known = {"solution": solution.id, "toolkit": dialect, "artifact": built.library, "not_timed": NOT_TIMED}
    return CompileResult.model_validate({"ok": True, **known})


def _chosen(build: CompileResult, number: int, folder: Path) -> CompileResult:
    """The build of all mutants, told which of them it is."""
    if build.toolkit != "opencl":
        return build.model_copy(update={"environment": {**build.environment, CHOICE: str(number)}})
    assert build.artifact
    place = folder / f"mutant{number}"
    shutil.copytree(build.artifact, place)
    launch = place / "launch.json"
    launch.write_text(launch.read_text("utf-8").replace(f"-D{CHOICE}=0", f"-D{CHOICE}={number}"), encoding="utf-8")
    return build.model_copy(update={"artifact": place})


def _small(task: Task) -> Task:
    axes = {name: axis.model_copy(update={"drawn": None}) for name, axis in task.axes.items()}
    known = {"correctness": [SIZES[task.name]], "content_hash": f"{task.content_hash} small"}
    return task.model_copy(update={"axes": axes, **known})


def _cheap(solution: Solution) -> Solution:
    """Nobody times these: one target, little optimisation."""
    flags = {"cpp": ["-O1"], "opencl": [f"-D{CHOICE}=0"]}.get(solution.toolkit, [])
    targets = ["gfx942"] if solution.toolkit == "triton" else []
    return solution.model_copy(update={"flags": flags, "targets": targets})


@pytest.mark.parametrize("written", WRITTEN, ids=lambda one: f"{one.task}-{one.solution}")
async def test_the_solution_passes_and_each_mutant_of_it_is_rejected(
    workspace: Workspace, judge: Judge, written: Written, tmp_path: Path
) -> None:
    task = _small(workspace.task(written.task))
    candidate = _cheap(together(written))
    build = await _build(task, candidate, tmp_path / "builds")
    assert build.ok, build.log or build.diagnostics
    baseline = workspace.solution(task, task.baselines[0])
    baseline_build = await get_toolkit(baseline.toolkit).compile(task, baseline, workspace.builds)
    for number, name in _judged(written, candidate.toolkit):
        request = EvaluationRequest(
            task=task,
            candidate=candidate,
            candidate_build=_chosen(build, number, tmp_path),
            baseline=baseline,
            baseline_name=task.baselines[0],
            baseline_build=baseline_build,
            mode="check",
        )
        _is_right(name, await judge.evaluate(request, lambda what, share: None), written)


def _judged(written: Written, toolkit: str) -> list[tuple[int, str]]:
    """Number and name of the solution itself and of its mutants."""
    mutants = list(enumerate(written.mutants, start=1))
    few = toolkit in SLOW and written.task != "rmsnorm" and not EVERY
    return [(0, ITSELF), *(mutants[::4] if few else mutants)]


def _is_right(name: str, result: BenchmarkResult, written: Written) -> None:
    wrong = Status.RUNTIME_ERROR if name in written.dies else Status.INCORRECT_NUMERICAL
    wanted = Status.PASSED if name == ITSELF else wrong
    assert result.status is wanted, f"{name} got {result.status} {result.cause} {result.detail}"


def _named(task: str) -> list[str]:
    """MUTANTS of the task's mutants.py, without running it."""
    for node in ast.parse((KERNELS / task / "mutants.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "MUTANTS":
            return list(ast.literal_eval(node.value))
    raise AssertionError(f"{task}/mutants.py declares no MUTANTS")


@pytest.mark.parametrize("task", SIZES)
def test_each_mutant_of_a_task_is_written_in_each_toolkit_or_it_is_said_why_not(
    task: str, capsys: pytest.CaptureFixture[str]
) -> None:
    by_toolkit: dict[str, list[Written]] = {}
    for one in WRITTEN:
        if one.task == task:
            by_toolkit.setdefault(one.shipped().toolkit, []).append(one)
    assert set(by_toolkit) == {"cpp", "cuda", "hip", "opencl", "triton"}
    reasons: list[str] = []
    for toolkit, several in by_toolkit.items():
        done, cannot = {name for one in several for name in one.mutants}, several[0].cannot
        absent = [name for name in _named(task) if name not in done]
        assert set(absent) <= set(cannot), f"{task} in {toolkit}: neither written nor explained"
        reasons += [f"  {toolkit:<8}{len(_named(task)) - len(absent)} of {len(_named(task))}"]
        reasons += [f"          not {name}: {cannot[name]}" for name in absent]
    with capsys.disabled():
        sys.stdout.write("\n".join([f"\nmutants of {task}", *reasons, ""]))
