"""Bugs planted in kernels are named by line, thread and address by the emulation's checks; honest ones have none."""

from pathlib import Path

import pytest

from mcp_server.workspace import Workspace
from toolkits.core import sanitize
from toolkits.core.gpu.simt_check import Watched, watched
from toolkits.core.rounds import recorded, rounds_of
from toolkits.core.schema import Defect, SanitizerFinding, Solution, Task, Workload
from toolkits.core.signature import Dialect

pytestmark = pytest.mark.anyio
KERNELS = Path(__file__).parents[3] / "kernels"
PLANTED = r"""
#include "task.h"
constexpr int kThreads = 64;
struct Args { const float* x; float factor; float* y; int n; };

__global__ void neighbour(Args a) {
    __shared__ float first[kThreads], second[kThreads];
    const int t = threadIdx.x;
    first[t] = a.x[0];
    second[t] = t ? first[t - 1] : 0.0f;  // data_race
    __syncthreads();
    a.y[0] = second[63] * 0.0f;  // data_race of blocks
}
__global__ void beyond(Args a) {
    __shared__ int sums[4];
    extern __shared__ float room[];
    if (threadIdx.x == 0) sums[4] = 1;  // out_of_bounds
    room[threadIdx.x + 1] = 0.0f;  // out_of_bounds
    a.y[0] += 0.0f * a.x[a.n + threadIdx.x / 63];  // out_of_bounds
}
__global__ void unset(Args a) {
    __shared__ float never[kThreads];
    atomicAdd(a.y, 0.0f * never[threadIdx.x]);  // uninitialised
}
__global__ void early(Args a) {
    if (threadIdx.x > 40) return;
    __syncthreads();  // divergent_barrier
}
__global__ void honest(Args a) {
    __shared__ float tile[kThreads];
    __shared__ bool last;
    const int i = blockIdx.x * kThreads + threadIdx.x;
    last = true;
    tile[threadIdx.x] = i < a.n ? a.x[i] : 0.0f;
    __syncthreads();
    if (i < a.n) a.y[i] = last ? tile[threadIdx.x] * a.factor : 0.0f;
    __syncthreads();
    if (threadIdx.x < 32) {
        for (int k = 16; k > 0; k /= 2) {
            if (threadIdx.x < k) tile[threadIdx.x] += tile[threadIdx.x + k];
            __syncwarp();
        }
    }
}
extern "C" void scale(const float* x, float factor, float* y, int64_t rows, int64_t columns, cudaStream_t stream) {
    const Args a{x, factor, y, static_cast<int>(rows * columns)};
    neighbour<<<2, kThreads, 0, stream>>>(a);
    beyond<<<1, kThreads, kThreads * sizeof(float), stream>>>(a);
    unset<<<1, kThreads, 0, stream>>>(a);
    early<<<1, kThreads, 0, stream>>>(a);
    honest<<<(a.n + kThreads - 1) / kThreads, kThreads, 0, stream>>>(a);
}
"""


Inputs = list[tuple[Workload, Path]]


async def first_round(task: Task, folder: Path) -> Inputs:
    rounds = rounds_of(task)[:1]
    return list(zip(rounds, await recorded(task, rounds, folder), strict=True))


async def checked(task: Task, dialect: Dialect, text: str, inputs: Inputs, folder: Path) -> Watched:
    """What the checks see."""
    name = "kernel.cu" if dialect == "cuda" else "kernel.hip"
    solution = Solution(task=task.name, toolkit=dialect, entry_point=f"{name}::{task.name}", sources={name: text})
    return await watched(task, solution, dialect, inputs, folder / "builds", folder, 99)


def at(seen: Watched, text: str) -> list[SanitizerFinding]:
    """The findings on the line of this text."""
    line = next(number for number, line in enumerate(PLANTED.splitlines(), start=1) if text in line)
    return [finding for finding in seen.findings if finding.line == line]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "run"
    path.mkdir()
    for parent in (path, *path.parents[:3]):
        parent.chmod(0o755)
    return path


async def test_each_planted_bug_is_named_on_its_line_and_nothing_else_is(task: Task, folder: Path) -> None:
    seen = await checked(task, "cuda", PLANTED, await first_round(task, folder), folder)
    assert not seen.reason and not seen.ending
    lines = enumerate(PLANTED.splitlines(), start=1)
    planted = {(line.split("// ")[1].split()[0], number) for number, line in lines if "// " in line}
    assert {(one.kind, one.line) for one in seen.findings if one.function != "honest"} >= planted, seen.findings
    assert not [one for one in seen.findings if one.function == "honest"]
    assert {one.file for one in seen.findings} == {"kernel.cu"}
    (race,) = [one for one in at(seen, "t ? first") if one.kind == "data_race"]
    assert race.access == "read" and race.address.startswith("first + ") and "the other: kernel.cu:9" in race.detail
    (shared,) = at(seen, "sums[4] =")
    assert (shared.thread, shared.access) == ("thread (0,0,0) of block (0,0,0)", "write")
    assert shared.address == "sums, 0 bytes after its end (it has 16)"
    (dynamic,) = at(seen, "room[threadIdx.x + 1]")
    assert dynamic.address == "dynamic shared memory, 0 bytes after its end (it has 256)"
    tensor = next(one for one in at(seen, "a.x[a.n +") if one.kind == "out_of_bounds")
    assert tensor.address.startswith("x, ") and "after its end (it has 204)" in tensor.address


BUGS: list[tuple[str, str, Defect]] = [
    ("    __syncthreads();\n", "", "data_race"),
    ("c < cols; c += kThreads) y", "c <= cols; c += kThreads) y", "out_of_bounds"),
]


async def test_bugs_in_a_shipped_kernel_are_named_and_it_has_none(tmp_path: Path, folder: Path) -> None:
    text = (KERNELS / "rmsnorm" / "solutions" / "hip" / "kernel.hip").read_text(encoding="utf-8")
    task = Workspace(tmp_path / "root").task("rmsnorm")
    inputs = await first_round(task, folder)
    assert not (await checked(task, "hip", text, inputs, folder)).findings
    for old, new, kind in BUGS:
        seen = await checked(task, "hip", text.replace(old, new, 1), inputs, folder)
        assert kind in {finding.kind for finding in seen.findings}, seen


NEEDS_NVCC = pytest.mark.skipif(bool(sanitize.missing("cuda")), reason=sanitize.missing("cuda") or "it is there")
SIMPLE = """
#include "task.h"
__global__ void scaled(const float* x, float factor, float* y, int64_t n) {
    const int64_t i = blockIdx.x * 64 + threadIdx.x;
    BODY
    if (i < n) y[i] = x[i] * factor;
}
extern "C" void scale(const float* x, float factor, float* y, int64_t rows, int64_t columns, cudaStream_t stream) {
    scaled<<<(rows * columns + 63) / 64, 64, 0, stream>>>(x, factor, y, rows * columns);
}
"""


def simple(body: str) -> Solution:
    sources = {"kernel.cu": SIMPLE.replace("BODY", body)}
    return Solution(task="scale", toolkit="cuda", entry_point="kernel.cu::scale", targets=["sm_90"], sources=sources)


@NEEDS_NVCC
async def test_mode_sanitize_runs_the_checks_of_the_emulation(task: Task, tmp_path: Path) -> None:
    seen = await sanitize.sanitized(task, simple("if (i <= n) y[i] = 0;"), tmp_path / "builds")
    assert seen.tools == ["emulation"] and [(one.kind, one.line) for one in seen.findings] == [("out_of_bounds", 5)]
    assert seen.findings[0].access == "write" and seen.findings[0].address == "y, 0 bytes after its end (it has 204)"


@NEEDS_NVCC
async def test_what_cannot_be_emulated_is_skipped_with_its_line(task: Task, tmp_path: Path) -> None:
    seen = await sanitize.sanitized(task, simple('asm volatile("membar.gl;");'), tmp_path / "builds")
    assert seen.skipped.startswith("kernel.cu:5: asm: inline assembly") and not seen.tools
