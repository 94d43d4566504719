"""`profile` of CUDA and HIP solutions: what is told without a device, and the way to one with a stand-in for ncu."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.toolkits.profilers.reports import DATA
from toolkits.core.gpu import device_access, host_program, solution_profile
from toolkits.core.gpu.device_access import Gpu
from toolkits.core.schema import Solution, Task
from toolkits.cuda import TOOLKIT as CUDA
from toolkits.hip import TOOLKIT as HIP

pytestmark = pytest.mark.anyio
needs_nvcc = pytest.mark.skipif(bool(CUDA.missing()), reason=f"missing {CUDA.missing()}")
needs_hip = pytest.mark.skipif(bool(HIP.missing()), reason=f"missing {HIP.missing()}")
H200 = Gpu("cuda:0", "NVIDIA H200", "sm_90", 150 << 30, 132, 1980000, 60 << 20, False)
SCALE = """#include "task.h"
__global__ void kernel(const float* x, float factor, float* y, int64_t n) {
    const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i < n) y[i] = factor * x[i];
}
extern "C" void scale(const float* x, float factor, float* y, int64_t rows, int64_t columns, cudaStream_t stream) {
    kernel<<<(unsigned)((rows * columns + 255) / 256), 256, 0, stream>>>(x, factor, y, rows * columns);
}
"""


@pytest.fixture
def solution() -> Solution:
    return Solution(task="scale", toolkit="cuda", entry_point="k.cu::scale", sources={"k.cu": SCALE})


@pytest.mark.parametrize(
    ("name", "targets", "device"),
    [
        pytest.param("cuda", ("sm_90a", "sm_100a"), "H100 SXM", marks=needs_nvcc),
        pytest.param("hip", ("gfx942", "gfx950"), "MI300X", marks=needs_hip),
    ],
)
async def test_without_a_device_a_profile_is_skipped_with_the_remedy_and_tells_what_the_compiler_knows(
    tmp_path: Path, name: str, targets: tuple[str, ...], device: str
) -> None:
    if await device_access.first(name):
        pytest.skip("this machine has such a device")
    command = [sys.executable, "-P", "-m", "mcp_server", "--root", str(tmp_path), "profile", "rmsnorm", name]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    first, rest = done.stdout.split("\n", 1)
    assert first.startswith("SKIPPED, not profiled: there is no ") and "give its path to profile" in first
    for target in targets:
        assert f"normalise {target}: possible 100%" in rest
    assert f"by the data sheet of {device}: at least" in rest and "memory bound (8.39 MB" in rest
    assert "launches, " not in rest  # nothing was launched, and nothing says so


@needs_nvcc
async def test_the_program_around_a_solution_builds_and_without_a_driver_says_that_there_is_no_device(
    tmp_path: Path, task: Task, solution: Solution
) -> None:
    if await device_access.first("cuda"):
        pytest.skip("this machine has such a device")
    program = await host_program.built(task, solution, "cuda", "sm_90a", tmp_path / "builds")
    done = subprocess.run([program, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 3 and done.stderr.startswith("driver: no device: ")


async def test_on_a_device_the_profiler_runs_over_the_program_in_a_box_and_its_report_is_the_answer(
    tmp_path: Path, task: Task, solution: Solution, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "tools" / "bin"
    tools.mkdir(parents=True)
    (tools / "raw.csv").write_bytes((DATA / "ncu" / "raw.csv").read_bytes())
    (tools / "ncu").write_text(
        '#!/bin/sh\ncase "$*" in *--import*) exec cat "${0%/*}/raw.csv";; esac\n'
        'while [ "$1" != --export ]; do shift; done\nprintf NVR > "$2"\n'
        'while [ "$1" != -- ]; do shift; done\nshift; exec "$@"\n'
    )
    program = tools / "program"
    program.write_text('#!/bin/sh\ntest -s "$1/arguments.txt" && ! test -e /root/.bashrc && echo driver: done\n')
    for path in (tools / "ncu", program):
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    report = await solution_profile.measured(
        task, solution, task.workloads[0], H200, program, tmp_path / "profile", 60.0
    )
    assert [one.name for one in report.kernels] == ["gemm_tensor", "axpy_simple"]
    assert (report.tool, report.target) == ("ncu", solution.id)
    assert "driver: done" in (tmp_path / "profile" / "ncu.log").read_text(encoding="utf-8")
    assert report.notes[0].startswith("the solution is called twice")
