"""The hip toolkit on sources whose faults are known: each is compiled for real AMD targets and named with its line."""

import re
from pathlib import Path

import pytest

from tests.toolkits.conftest import Evaluate
from toolkits.core.errors import InvalidInput
from toolkits.core.gpu import amd
from toolkits.core.schema import CompileResult, KernelReport, Solution, Status, Task
from toolkits.core.toolkit import get_toolkit

pytestmark = pytest.mark.anyio
HIP = get_toolkit("hip")
if HIP.missing():
    pytest.skip(f"needs {HIP.missing()}", allow_module_level=True)

HOST = """
extern "C" void scale(const float* x, float factor, float* y, int64_t rows, int64_t columns, hipStream_t stream) {
    LAUNCH;
    hipDeviceSynchronize();
}
"""
HEAD = '#include "task.h"\n#include <hip/hip_runtime.h>\n'
BOTH = ["gfx942", "gfx950"]
PLAIN = """
__global__ void scaled(const float* x, float factor, float* y, int64_t n) {
    int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * factor;
}
"""
LAUNCH = "scaled<<<(rows * columns + 255) / 256, 256>>>(x, factor, y, rows * columns)"


def hip(kernels: str = PLAIN, launch: str = LAUNCH, **fields: object) -> Solution:
    """A HIP solution of the scale task."""
    source = HEAD + kernels + HOST.replace("LAUNCH", launch)
    given = {"task": "scale", "toolkit": "hip", "entry_point": "main.hip::scale", "sources": {"main.hip": source}}
    return Solution.model_validate(given | fields)


async def built(
    task: Task, builds: Path, kernels: str = PLAIN, launch: str = LAUNCH, **fields: object
) -> CompileResult:
    return await HIP.compile(task, hip(kernels, launch, **fields), builds)


def one(result: CompileResult, target: str) -> KernelReport:
    (found,) = [kernel for kernel in result.kernels if kernel.target == target]
    return found


async def test_a_plain_kernel_is_reported_for_both_architectures(task: Task, tmp_path: Path) -> None:
    result = await built(task, tmp_path)
    assert result.ok, result.diagnostics
    for target in ("gfx942", "gfx950"):
        kernel = one(result, target)
        assert kernel.name == "scaled" and kernel.threads == 256
        assert kernel.registers and kernel.registers < 32 and kernel.scalar_registers and kernel.stack_bytes == 0
        assert kernel.occupancy == 1.0 and kernel.occupancy_limit == ""
        assert kernel.instructions["global_load_dword"] == kernel.instructions["global_store_dword"] == 1
        assert any(note.startswith("narrow loads: 1 x global_load_dword at main.hip:6") for note in kernel.notes)
        assert any("wave64" in note for note in kernel.notes)


async def test_an_unchanged_source_comes_from_the_cache(task: Task, tmp_path: Path) -> None:
    first = await built(task, tmp_path, targets=["gfx942"])
    again = await built(task, tmp_path, targets=["gfx942"])
    assert again.cached and again.kernels == first.kernels and again.artifact == first.artifact


async def test_vector_loads_are_not_called_narrow(task: Task, tmp_path: Path) -> None:
    wide = PLAIN.replace("const float*", "const float4*").replace("float* y", "float4* y")
    launch = "scaled<<<rows, 64>>>((const float4*)x, factor, (float4*)y, rows * columns / 4)"
    result = await built(task, tmp_path, wide, launch, targets=["gfx942"])
    assert result.ok, result.diagnostics
    kernel = one(result, "gfx942")
    assert kernel.instructions["global_load_dwordx4"] == 1
    assert not any("narrow" in note for note in kernel.notes)


SPILL = """
__global__ void __launch_bounds__(1024) spilling(const float* x, float factor, float* y, int64_t n) {
    float a[160];
    #pragma unroll
    for (int i = 0; i < 160; i++) a[i] = x[threadIdx.x + i * 1024];
    __syncthreads();
    #pragma unroll
    for (int i = 0; i < 160; i++) y[threadIdx.x + i * 1024] = a[i] * a[159 - i] * factor;
}
"""


async def test_a_planted_spill_is_named_with_its_line(task: Task, tmp_path: Path) -> None:
    result = await built(task, tmp_path, SPILL, "spilling<<<1, 1024>>>(x, factor, y, rows)", targets=["gfx942"])
    assert result.ok, result.diagnostics
    kernel = one(result, "gfx942")
    assert kernel.registers == 128 and kernel.spilled_registers and kernel.stack_bytes
    assert any(name.startswith("scratch_store") for name in kernel.instructions)
    assert re.match(
        r"\d+ vector registers are spilled: \d+ bytes of scratch a lane, .* at main.hip:\d+", kernel.notes[0]
    )


async def test_registers_limit_occupancy(task: Task, tmp_path: Path) -> None:
    wider = SPILL.replace("1024)", "256)").replace("spilling", "roomy")
    result = await built(task, tmp_path, wider, "roomy<<<1, 256>>>(x, factor, y, rows)", targets=["gfx942"])
    kernel = one(result, "gfx942")
    assert kernel.spilled_registers == 0 and kernel.registers and kernel.registers > 160
    assert kernel.occupancy and kernel.occupancy < 0.5 and kernel.occupancy_limit == "registers"


LDS = """
__global__ void tiled(const float* x, float factor, float* y, int64_t n) {
    __shared__ float tile[25600];
    for (int i = threadIdx.x; i < 25600; i += 256) tile[i] = x[i % n];
    __syncthreads();
    y[threadIdx.x] = tile[25599 - threadIdx.x] * factor;
}
"""


async def test_lds_above_64_kb_is_an_error_on_gfx942_alone(task: Task, tmp_path: Path) -> None:
    result = await built(task, tmp_path, LDS, "tiled<<<1, 256>>>(x, factor, y, rows)", targets=BOTH)
    assert not result.ok and result.artifact is None
    (error,) = [found for found in result.diagnostics if found.severity == "error"]
    assert "local memory (102400) exceeds limit (65536)" in error.message and error.message.endswith("[gfx942]")
    assert (error.file, error.line) == ("main.hip", 4)
    kernel = one(result, "gfx950")
    assert kernel.shared_bytes == 102400
    assert kernel.occupancy == 4 / 32 and kernel.occupancy_limit == "shared memory"


async def test_where_nobody_named_targets_one_that_builds_is_enough(task: Task, tmp_path: Path) -> None:
    result = await built(task, tmp_path, LDS, "tiled<<<1, 256>>>(x, factor, y, rows)")
    assert result.ok
    (warning,) = [found for found in result.diagnostics if found.severity == "warning"]
    assert "exceeds limit (65536)" in warning.message and warning.message.endswith("[gfx942]")


DYNAMIC = """
__global__ void tiled(const float* x, float factor, float* y, int64_t n) {
    extern __shared__ float tile[];
    tile[threadIdx.x] = x[threadIdx.x % n];
    __syncthreads();
    y[threadIdx.x] = tile[63 - threadIdx.x] * factor;
}
constexpr int TILE = 20000;
"""


async def test_dynamic_lds_is_added_from_the_launch(task: Task, tmp_path: Path) -> None:
    result = await built(
        task, tmp_path, DYNAMIC, "tiled<<<1, 64, TILE * sizeof(float)>>>(x, factor, y, rows)", targets=BOTH
    )
    (error,) = [found for found in result.diagnostics if found.severity == "error"]
    assert error.message == (
        "launch of tiled would fail: 0 bytes of static and 80000 of dynamic LDS, a workgroup has at most 65536 [gfx942]"
    )
    assert error.line == 13
    assert one(result, "gfx950").dynamic_shared_bytes == 80000


@pytest.mark.parametrize(
    ("kernels", "block", "why"),
    [
        (PLAIN, "2048", "2048 threads a workgroup, at most 1024 are possible"),
        (PLAIN, "dim3(64, 32)", "2048 threads a workgroup, at most 1024 are possible"),
        (
            PLAIN.replace("void scaled", "void __launch_bounds__(128) scaled"),
            "256",
            "256 threads a workgroup, but __launch_bounds__ promised at most 128",
        ),
    ],
)
async def test_a_launch_that_must_fail_is_an_error_with_its_line(
    task: Task, tmp_path: Path, kernels: str, block: str, why: str
) -> None:
    result = await built(task, tmp_path, kernels, f"scaled<<<1, {block}>>>(x, factor, y, rows)")
    (error,) = [found for found in result.diagnostics if found.severity == "error"]
    assert not result.ok and error.message == f"launch of scaled would fail: {why}"
    assert (error.file, error.line) == ("main.hip", 10)


MFMA = """
typedef _Float16 half4 __attribute__((ext_vector_type(4)));
typedef float float16v __attribute__((ext_vector_type(16)));
__global__ void product(const half4* a, float16v* c) {
    int lane = threadIdx.x;
    float16v sum = {};
    for (int i = 0; i < 4; i++) sum = __builtin_amdgcn_mfma_f32_32x32x8f16(a[lane + 64 * i], a[lane], sum, 0, 0, 0);
    c[lane] = sum;
}
"""


async def test_matrix_instructions_are_counted(task: Task, tmp_path: Path) -> None:
    result = await built(task, tmp_path, MFMA, "product<<<1, 64>>>((const half4*)x, (float16v*)y)")
    for target in ("gfx942", "gfx950"):
        mix = one(result, target).instructions
        assert sum(count for name, count in mix.items() if name.startswith("v_mfma_f32_32x32x8")) == 4


async def test_the_emulated_kernel_passes_the_judge_and_is_not_timed(evaluate: Evaluate) -> None:
    result = await evaluate(hip(targets=["gfx942"]), "full")
    assert result.status is Status.PASSED and "emulated" in result.not_timed, result.detail
    wrong = await evaluate(hip(PLAIN.replace("* factor", "+ factor"), targets=["gfx942"]))
    assert wrong.status is Status.INCORRECT_NUMERICAL


async def test_a_source_for_matrix_cores_says_why_it_cannot_run_here(task: Task, tmp_path: Path) -> None:
    result = await built(task, tmp_path, MFMA, "product<<<1, 64>>>((const half4*)x, (float16v*)y)")
    assert result.ok and result.artifact is None
    assert result.not_timed.startswith("main.hip:") and "mfma" in result.not_timed


async def test_a_syntax_error_has_its_place_once_for_all_targets(task: Task, tmp_path: Path) -> None:
    result = await built(task, tmp_path, PLAIN.replace("* factor", "* facto"))
    (error,) = [found for found in result.diagnostics if found.severity == "error"]
    assert (error.file, error.line) == ("main.hip", 6)
    assert error.message == "use of undeclared identifier 'facto'; did you mean 'factor'?"


async def test_a_device_function_without_a_body_is_an_error(task: Task, tmp_path: Path) -> None:
    lacking = "__device__ float missing(float);" + PLAIN.replace("x[i] * factor", "missing(x[i])")
    result = await built(task, tmp_path, lacking)
    assert [found.message for found in result.diagnostics if found.severity == "error"] == [
        "device function missing(float) is declared but not defined: define it in the same file"
    ]


async def test_a_missing_host_function_is_told_with_its_declaration(task: Task, tmp_path: Path) -> None:
    result = await built(task, tmp_path, entry_point="main.hip::run")
    wanted = "void run(const float* x, float factor, float* y, int64_t rows, int64_t columns, hipStream_t stream)"
    assert result.diagnostics[0].message == f'missing entry function: define exactly `extern "C" {wanted}`'
    assert not result.ok


async def test_private_files_do_not_show_in_errors(task: Task, tmp_path: Path) -> None:
    secret = tmp_path / "secret.h"
    secret.write_text("password = hunter2\n")
    result = await built(task, tmp_path / "builds", f'#include "{secret}"\n{PLAIN}')
    assert not result.ok and "hunter2" not in result.log


async def test_unknown_targets_and_foreign_flags_are_refused(task: Task, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="target 'gfx9000' is not known: choose among"):
        await built(task, tmp_path, targets=["gfx9000"])
    with pytest.raises(InvalidInput, match=r"-fplugin=x\.so' is refused"):
        await built(task, tmp_path, flags=["-fplugin=x.so"])


def test_occupancy_follows_from_the_tables() -> None:
    mi300, mi350 = amd.AMD["gfx942"], amd.AMD["gfx950"]
    assert amd.occupancy(mi300, 256, 64, 0, 32, 0).waves == 32
    assert amd.occupancy(mi300, 256, 128, 0, 32, 0) == amd.Occupancy(16, "registers")
    assert amd.occupancy(mi300, 256, 100, 64, 32, 0) == amd.Occupancy(12, "registers")
    assert amd.occupancy(mi300, 256, 32, 0, 32, 32 * 1024) == amd.Occupancy(8, "shared memory")
    assert amd.occupancy(mi350, 256, 32, 0, 32, 32 * 1024) == amd.Occupancy(16, "shared memory")
    assert amd.occupancy(mi300, 64, 32, 0, 32, 0).waves == 32
