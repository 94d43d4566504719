"""How long an unchanged source waits for its build, by toolkit, and NVRTC for a source that it has not seen."""

import statistics
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from rich.console import Console

from mcp_server.folders import read_solution, read_task
from toolkits.core.gpu import nvcc, toolchain
from toolkits.core.toolkit import get_toolkit

TASK = Path(__file__).parents[1] / "kernels" / "rmsnorm"
SOLUTIONS = {"cpp": "naive", "python": "torch", "cuda": "cuda", "hip": "hip", "opencl": "opencl", "triton": "triton"}
TIMES = 20
KERNEL = """__global__ void scale(const float* x, float factor, float* y, int n) {
  const int i = NUMBER + threadIdx.x;
  if (i < n) y[i] = x[i] * factor;
}
"""


async def measure(console: Console, folder: Path) -> None:
    """Print the medians."""
    known = [f"{name} {ms:.1f}" for name, ms in (await _cached(folder / "builds")).items()]
    console.print(f"compile of an unchanged source, median of {TIMES}, ms (at most 10): {', '.join(known)}")
    if toolchain.nvrtc():
        console.print(f"NVRTC on a new source: {await _at_run_time(folder / 'nvrtc'):.0f} ms (at most 100)")


async def _cached(builds: Path) -> dict[str, float]:
    task, found = read_task(TASK), dict[str, float]()
    for name, solution_name in SOLUTIONS.items():
        toolkit, solution = get_toolkit(name), read_solution(TASK / "solutions" / solution_name, task.name)
        if not toolkit.missing():
            await toolkit.compile(task, solution, builds)
            found[name] = await _median_ms(lambda _, t=toolkit, s=solution: t.compile(task, s, builds))
    return found


async def _at_run_time(work: Path) -> float:
    (work / nvcc.SOURCES).mkdir(parents=True)

    async def new(number: int) -> None:
        (work / nvcc.SOURCES / "kernel.cu").write_text(KERNEL.replace("NUMBER", str(number)), encoding="utf-8")
        done = await nvcc.compiled_at_run_time(work, "kernel.cu", "sm_90a", ("-std=c++20",), 60.0)
        assert done.ok, done.log

    return await _median_ms(new)


async def _median_ms(call: Callable[[int], Awaitable[object]]) -> float:
    spent: list[float] = []
    for number in range(TIMES):
        started = time.perf_counter()
        await call(number)
        spent.append((time.perf_counter() - started) * 1e3)
    return statistics.median(spent)
