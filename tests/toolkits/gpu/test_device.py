"""The way to a GPU, walked on a stand-in for its driver: buffers, bursts, clocks, cheats, and what is said of failures.

Where a device is, the last test runs the corpus of cheats on it.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest

from bench.gpu_check import standing
from bench.gpu_check.report import DRY, Section, written
from mcp_server.folders import read_solution, read_task
from tests.cheats_gpu.corpus import SHARED, TASK, Case, Corpus, find_cases
from toolkits.core.errors import HarnessError
from toolkits.core.gpu import device_access, device_build, toolchain
from toolkits.core.gpu.device_names import LIBRARY_VARIABLE
from toolkits.core.judge.client import Judge
from toolkits.core.judge.request import EvaluationRequest
from toolkits.core.schema import BenchmarkResult, CompileResult, Solution, Status
from toolkits.core.signature import device_header
from toolkits.core.toolkit import get_toolkit

ROOT = Path(__file__).parents[3]
H100 = device_access.Gpu("cuda:0", "NVIDIA H100", "sm_90", 80 << 30, 132, 1_980_000, 50 << 20, stand_in=False)
CHEATS = ("side_stream", "patched_events", "replay_last", "write_past_end")
TORCH = "import torch\n\ndef run(x, y):\n    torch.softmax(x, -1, out=y)\n"
REFUSED_LAUNCH = """
extern "C" const char* kernel_lab_last_error() { return "invalid configuration"; }
RUN { honest(x, y, rows, columns, stream); }
"""


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stand-in")


@pytest.fixture(scope="module")
async def corpus(folder: Path) -> AsyncGenerator[Corpus]:
    """On the stand-in, whatever else this machine has."""
    driver = await standing.built_driver(folder)
    judge = Judge()
    with standing.in_use(driver):
        yield Corpus(judge, folder, driver)
        await judge.close()


async def _evaluated(corpus: Corpus, baseline: Solution, build: CompileResult) -> BenchmarkResult:
    """The corpus' honest kernel against another baseline."""
    plain = Case(TASK / "solutions" / "plain" / "plain.cu", find_cases()[0].spec).solution()
    request = EvaluationRequest(
        task=corpus.task,
        candidate=plain,
        candidate_build=await corpus.built(plain),
        baseline=baseline,
        baseline_name=baseline.toolkit,
        baseline_build=build,
    )
    return await corpus.judge.evaluate(request, lambda what, share: None)


@pytest.mark.anyio
@pytest.mark.parametrize("api", ["cuda", "hip"])
async def test_every_function_of_the_driver_layer_works_for_both(corpus: Corpus, folder: Path, api: str) -> None:
    module = await standing.built_module(folder / "nothing.module")
    command = [sys.executable, "-m", "bench.gpu_check.self_test", f"{api}:0", str(module)]
    done = subprocess.run(command, cwd=ROOT, env=dict(os.environ), capture_output=True, text=True, check=True)
    said = json.loads(done.stdout)
    assert said["moved"] and said["leaked_bytes"] == 0 and "OUT_OF_MEMORY" in said["refused"]
    assert said["facts"]["architecture"] == {"cuda": "sm_90", "hip": "gfx942"}[api]
    assert set(said["nothing_us"]) == {"warm", "cold", "graph"}


@pytest.mark.anyio
@pytest.mark.parametrize("case", find_cases(CHEATS), ids=lambda case: case.name)
async def test_a_cheat_on_a_device_is_refused_and_its_honest_twin_passes(corpus: Corpus, case: Case) -> None:
    outcome = await corpus.judged(case)
    assert outcome.ok, f"{case.spec.does} Expected {case.expected}, got {outcome.got}: {outcome.detail}"


def test_the_gpu_half_of_the_corpus_is_large_enough_and_names_its_sources() -> None:
    cases = find_cases()
    assert len([case for case in cases if not case.honest]) >= 8 <= len([case for case in cases if case.honest])
    assert all(case.spec.does and case.spec.idea and case.spec.source and case.spec.expect for case in cases)


@pytest.mark.anyio
async def test_a_torch_baseline_follows_the_candidate_to_the_device_and_no_figure_is_called_a_gpus(
    corpus: Corpus, folder: Path
) -> None:
    torch = Solution(task=TASK.name, toolkit="python", entry_point="main.py::run", sources={"main.py": TORCH})
    result = await _evaluated(corpus, torch, await get_toolkit("python").compile(corpus.task, torch, folder))
    assert result.status is Status.PASSED and result.verdict, result.detail
    measured = result.measurements[0]
    assert measured.latency_us and measured.wall_us and measured.host_us and measured.cold and measured.checked
    assert "no figure here is a GPU's" in result.clock and result.host["device"] == "cuda:0"
    # The stand-in captures what is put on a stream; what torch computes on the host is not, and the judge sees it.
    assert measured.graph_us is None and "the baseline's answers from a graph are wrong" in result.host["no_graph"]


@pytest.mark.anyio
async def test_a_baseline_that_runs_on_the_cpu_leaves_a_device_solution_checked_only(corpus: Corpus) -> None:
    library = Solution(task=TASK.name, toolkit="cpp", entry_point="main.cpp::run", sources={"main.cpp": ""})
    build = CompileResult(ok=True, solution=library.id, toolkit="cpp", artifact=ROOT / "pyproject.toml")
    result = await _evaluated(corpus, library, build)
    assert result.status is Status.PASSED and result.verdict is None
    assert "the baseline cpp is a cpp solution, which runs on the CPU" in result.not_timed


@pytest.mark.anyio
async def test_a_launch_that_was_refused_is_a_runtime_error_with_the_runtimes_words(
    corpus: Corpus, tmp_path: Path
) -> None:
    (tmp_path / "cheat.cu").write_text(f'#include "{SHARED.name}"\n{REFUSED_LAUNCH}', encoding="utf-8")
    outcome = await corpus.judged(Case(tmp_path / "cheat.cu", find_cases()[0].spec))
    assert outcome.got == " ".join((Status.RUNTIME_ERROR, "launch_failed"))
    assert "invalid configuration" in outcome.detail


@pytest.mark.anyio
async def test_a_solution_that_writes_to_its_input_on_the_device_is_told_so(corpus: Corpus) -> None:
    outcome = await corpus.judged(find_cases(["input_in_place"])[0])
    assert outcome.got == " ".join((Status.RUNTIME_ERROR, "input_modified")) and "inputs" in outcome.detail


@pytest.mark.anyio
async def test_a_shipped_kernel_emulated_walks_the_whole_way_to_a_device(corpus: Corpus, folder: Path) -> None:
    task = read_task(ROOT / "kernels" / "rmsnorm")
    solution = read_solution(task.folder / "solutions" / "cuda", task.name)
    build = await get_toolkit("cuda").compile(task, solution, folder)
    assert build.ok and build.device == "cuda:0" and not build.not_timed
    request = EvaluationRequest(
        task=task,
        candidate=solution,
        candidate_build=build,
        baseline=solution,
        baseline_name="itself",
        baseline_build=build,
        mode="check",
    )
    result = await corpus.judge.evaluate(request, lambda what, share: None)
    assert result.status is Status.PASSED and result.rounds >= 3, result.detail


@pytest.mark.anyio
async def test_a_driver_that_cannot_be_opened_blames_no_solution(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = next(case for case in find_cases(["no_op"]) if case.honest)
    build = await corpus.built(case.solution())
    monkeypatch.setenv(LIBRARY_VARIABLE["cuda"], "/usr/lib/libc.so.0")
    judge = Judge()
    request = EvaluationRequest(
        task=corpus.task,
        candidate=case.solution(),
        candidate_build=build,
        baseline=case.solution(),
        baseline_name="itself",
        baseline_build=build,
    )
    with pytest.raises(HarnessError, match="cuda:0 failed") as caught:
        await judge.evaluate(request, lambda what, share: None)
    await judge.close()
    assert caught.value.cause == "device_failed"


@pytest.mark.anyio
@pytest.mark.skipif(not toolchain.program("nvcc"), reason="this machine lacks nvcc")
async def test_the_real_compiler_builds_a_library_for_a_device_that_is_not_here(tmp_path: Path) -> None:
    task = read_task(ROOT / "kernels" / "rmsnorm")
    solution = read_solution(task.folder / "solutions" / "cuda", task.name)
    sources = {"task.h": device_header(task, "cuda", solution.entry_function), **solution.sources}
    compiler = [toolchain.needed("nvcc"), "-O3", "-std=c++20"]
    built = await device_build.device_library(tmp_path, sources, [solution.entry_file], compiler, H100, 120.0)
    assert built.library, built.log
    result = CompileResult(ok=True, solution=solution.id, toolkit="cuda", not_timed="emulated")
    found = device_build.with_library(H100, result, built)
    assert found.ok and found.device == "cuda:0" and not found.not_timed and found.artifact == built.library
    symbols = subprocess.run(["nm", "-D", built.library], capture_output=True, text=True, check=True).stdout
    assert f" T {solution.entry_function}\n" in symbols and " T kernel_lab_last_error\n" in symbols


@pytest.mark.anyio
@pytest.mark.skipif(not toolchain.program("nvcc"), reason="this machine lacks nvcc")
async def test_what_does_not_build_for_the_device_is_a_compile_error_with_its_line(tmp_path: Path) -> None:
    sources = {"main.cu": "#include <cuda_runtime.h>\nvoid run() { nowhere(); }\n"}
    built = await device_build.device_library(tmp_path, sources, ["main.cu"], [toolchain.needed("nvcc")], H100, 120.0)
    result = CompileResult(ok=True, solution="x", toolkit="cuda")
    found = device_build.with_library(H100, result, built)
    assert not found.ok and found.artifact is None
    assert (found.diagnostics[0].file, found.diagnostics[0].line) == ("main.cu", 2)


@pytest.mark.anyio
async def test_without_a_driver_there_is_no_device_and_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIBRARY_VARIABLE["cuda"], "/nowhere/libcuda.so")
    found = await device_access.found("cuda")
    assert not found.gpus and "/nowhere/libcuda.so" in found.problem


def test_a_dry_run_says_on_top_of_its_report_that_no_figure_is_a_gpus(tmp_path: Path) -> None:
    section = Section("timers", columns=("kernel", "us"), rows=[["a|b", "1.0"]], why="none")
    text = written([section], tmp_path, device="cuda:0", dry=True).read_text(encoding="utf-8")
    assert text.index(DRY) < text.index("## timers") and "| a\\|b | 1.0 |" in text
    assert json.loads((tmp_path / "gpu-check.json").read_text(encoding="utf-8"))["figures_are_a_gpus"] is False


@pytest.mark.gpu
@pytest.mark.skipif(not device_access.nodes("cuda"), reason="no NVIDIA GPU here")
def test_the_corpus_of_cheats_on_a_real_device() -> None:
    async def all_judged() -> list[str]:
        judge = Judge()
        with tempfile.TemporaryDirectory() as builds:
            corpus = Corpus(judge, Path(builds), None)
            outcomes = [await corpus.judged(case) for case in find_cases()]
        await judge.close()
        return [f"{one.case.name}: {one.got} {one.detail}" for one in outcomes if not one.ok]

    assert anyio.run(all_judged) == []
