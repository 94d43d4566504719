"""CUDA and HIP kernels run on the CPU under our SIMT emulation, and are judged there by the judge of C++ solutions."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path

import pytest

from mcp_server.workspace import Workspace
from tests.toolkits.conftest import BASELINE, python
from toolkits.core.gpu.emulate import NOT_TIMED, Emulated, emulated_library
from toolkits.core.gpu.simt_limits import unsupported
from toolkits.core.gpu.simt_source import rewritten
from toolkits.core.judge.client import Judge
from toolkits.core.judge.request import EvaluationRequest
from toolkits.core.schema import BenchmarkResult, CompileResult, Solution, Status, Task
from toolkits.core.signature import Dialect, device_header
from toolkits.core.toolkit import get_toolkit

pytestmark = pytest.mark.anyio
KERNELS = Path(__file__).parents[3] / "kernels"
SUFFIX = {"cuda": "cu", "hip": "hip"}
DIALECTS: list[Dialect] = ["cuda", "hip"]
Run = Callable[[Task, Dialect, str], Awaitable[BenchmarkResult]]
Judged = Callable[[Task, Dialect, str, list[dict[str, str]]], Awaitable[list[BenchmarkResult]]]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return Workspace(tmp_path_factory.mktemp("root"))


@pytest.fixture(scope="module")
async def judge() -> AsyncGenerator[Judge]:
    judge = Judge()
    yield judge
    await judge.close()


def source(task: str, dialect: Dialect) -> str:
    return (KERNELS / task / "solutions" / dialect / f"kernel.{SUFFIX[dialect]}").read_text(encoding="utf-8")


def scaled(kernels: str, launch: str, dialect: Dialect = "cuda", head: str = "") -> str:
    """A source of the scale task."""
    stream = f"{dialect}Stream_t stream"
    parameters = f"const float* x, float factor, float* y, int64_t rows, int64_t columns, {stream}"
    return f'#include "task.h"\n{head}{kernels}\nextern "C" void scale({parameters}) {{\n{launch}\n}}\n'


def solution(task: str, dialect: Dialect, text: str) -> Solution:
    name = f"kernel.{SUFFIX[dialect]}"
    return Solution(task=task, toolkit=dialect, entry_point=f"{name}::{task}", sources={name: text})


async def emulated(task: Task, dialect: Dialect, text: str, work: Path) -> Emulated:
    header = device_header(task, dialect, task.name)
    return await emulated_library(work, task, solution(task.name, dialect, text), dialect, header)


@pytest.fixture
def judged(judge: Judge, workspace: Workspace, tmp_path: Path) -> Judged:
    """Judge a source against the task's first baseline, on the emulation alone; once in each environment."""

    async def all_judged(
        task: Task, dialect: Dialect, text: str, environments: list[dict[str, str]]
    ) -> list[BenchmarkResult]:
        built = await emulated(task, dialect, text, tmp_path)
        assert built.library, built.why_not()
        candidate = solution(task.name, dialect, text)
        build = CompileResult(
            ok=True, solution=candidate.id, toolkit=dialect, artifact=built.library, not_timed=NOT_TIMED
        )
        shipped = (task.folder / "solutions").is_dir()
        baseline = workspace.solution(task, task.baselines[0]) if shipped else python(BASELINE)
        baseline_build = await get_toolkit(baseline.toolkit).compile(task, baseline, workspace.builds)
        return [
            await judge.evaluate(
                EvaluationRequest(
                    task=task,
                    candidate=candidate,
                    candidate_build=build.model_copy(update={"environment": environment}),
                    baseline=baseline,
                    baseline_name="torch",
                    baseline_build=baseline_build,
                ),
                lambda what, share: None,
            )
            for environment in environments
        ]

    return all_judged


@pytest.fixture
def run(judged: Judged) -> Run:
    async def one(task: Task, dialect: Dialect, text: str) -> BenchmarkResult:
        (result,) = await judged(task, dialect, text, [{}])
        return result

    return one


# --- a shipped solution ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", DIALECTS)
async def test_a_shipped_kernel_passes_the_judge_and_is_not_timed(
    workspace: Workspace, run: Run, dialect: Dialect
) -> None:
    """The other ones, and through their toolkits: tests/kernels."""
    result = await run(workspace.task("rmsnorm"), dialect, source("rmsnorm", dialect))
    assert result.status is Status.PASSED, f"{result.cause} {result.detail}"
    assert result.not_timed == NOT_TIMED and result.speedup is None
    assert {m.status for m in result.measurements} == {Status.SKIPPED}


# --- the language --------------------------------------------------------------------------------------------------

PIECES = r"""
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
namespace cg = cooperative_groups;
template <typename T, int N> struct Pair { T values[N]; };
__constant__ float table[4];
__device__ int counter;

__device__ bool warp_pieces() {
    const unsigned lane = threadIdx.x % 32, all = 0xffffffffu;
    bool good = __shfl_sync(all, lane, 5) == 5 && __shfl_sync(all, lane, 3, 8) == lane / 8 * 8 + 3;
    good &= __shfl_up_sync(all, lane, 2) == (lane < 2 ? lane : lane - 2);
    good &= __shfl_down_sync(all, lane, 3, 16) == (lane % 16 + 3 < 16 ? lane + 3 : lane);
    good &= __shfl_xor_sync(all, static_cast<double>(lane), 7) == (lane ^ 7);
    good &= __ballot_sync(all, lane < 4) == 15u && __any_sync(all, lane == 9) && !__all_sync(all, lane == 9);
    good &= __popc(__match_any_sync(all, lane / 4)) == 4 && __reduce_add_sync(all, 1) == 32;
    if (lane < 8) good &= __shfl_down_sync(0xffu, lane, 4, 8) == (lane < 4 ? lane + 4 : lane);
    auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    good &= cg::reduce(tile, 1, cg::plus<int>()) == 8 && tile.thread_rank() == lane % 8;
    return good;
}

__device__ bool number_pieces() {
    const __half2 both = __floats2half2_rn(1.5f, -2.25f);
    const __nv_bfloat16 three = __float2bfloat16(3.0f);
    const float2 wide = __half22float2(__hadd2(both, both));
    bool good = wide.x == 3.0f && wide.y == -4.5f && __half2float(__float2half(65520.0f)) == INFINITY;
    good &= __half_as_ushort(__float2half(0x1p-24f)) == 1 && __half2float(__ushort_as_half(0x3555)) == 0x1.554p-2f;
    good &= __bfloat162float(__float2bfloat16(1.00390625f)) == 1.0f && float(three * three) == 9;
    const float4 four = make_float4(1, 2, 3, 4);
    good &= fmaf(four.x, four.y, four.w) == 6.0f && rsqrtf(4.0f) == 0.5f && __expf(0.0f) == 1.0f && max(3, 4) == 4;
    good &= __float2int_rn(2.5f) == 2 && __brev(1u) == 0x80000000u && __clz(1) == 31 && __fdividef(1.0f, 4.0f) == 0.25f;
    return good;
}

__global__ void __launch_bounds__(64, 2)
pieces(const float* __restrict__ x, Pair<float, 2> factor, float* y, int64_t n) {
    extern __shared__ __align__(16) unsigned char bytes[];
    static __shared__ int votes, old[64];
    float* room = reinterpret_cast<float*>(bytes);
    if (threadIdx.x == 0) votes = 0;
    __syncthreads();
    const bool mine = warp_pieces() && number_pieces();
    atomicAdd(&votes, mine);
    old[threadIdx.x] = atomicMax(&counter, 7);
    const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
    room[63 - threadIdx.x] = i < n ? __ldg(x + i) : 0.0f;
    const bool good = __syncthreads_and(mine) && __syncthreads_count(threadIdx.x < 9) == 9;
    if (i < n) y[i] = votes == 64 && good ? room[63 - threadIdx.x] * factor.values[1] * table[2] : -1.0f;
}
template <int THREADS, typename T>
void start(dim3 grid, const T* x, Pair<T, 2> factor, T* y, int64_t n, cudaStream_t s) {
    // a launch in a comment: nothing<<<1, 2>>>(x); and one in a text
    const char* text = "nothing<<<1, 2>>>(x)"; (void)text;
    pieces<<<dim3(grid.x, (1, 1)), Pair<int, 1>{{THREADS}}.values[0], sizeof(T) * THREADS, s>>>(x, factor, y, n);
}
"""
PIECES_LAUNCH = """
    const float ones[4] = {1, 1, 1, 1};
    cudaMemcpyToSymbolAsync(table, ones, sizeof ones, 0, cudaMemcpyHostToDevice, stream);
    float* scratch;
    const int64_t n = rows * columns;
    if (cudaMallocAsync(&scratch, n * sizeof(float), stream) != cudaSuccess) return;
    cudaMemsetAsync(scratch, 0, n * sizeof(float), stream);
    start<64>(
        dim3((n + 63) / 64),
        x, Pair<float, 2>{{0.0f, factor}}, scratch, n, stream);
    cudaMemcpyAsync(y, scratch, n * sizeof(float), cudaMemcpyDeviceToDevice, stream);
    cudaFreeAsync(scratch, stream);
"""


async def test_the_pieces_of_cuda_mean_what_they_mean_on_a_device(task: Task, run: Run) -> None:
    result = await run(task, "cuda", scaled(PIECES, PIECES_LAUNCH))
    assert result.status is Status.PASSED, f"{result.cause} {result.detail}"


WAVE = r"""
__global__ void pieces(const float* x, float factor, float* y, int64_t n) {
    HIP_DYNAMIC_SHARED(float, room)
    const unsigned lane = __builtin_amdgcn_workitem_id_x() % warpSize;
    bool good = warpSize == 64 && __ballot(lane >= 32) == 0xffffffff00000000ull && __shfl(lane, 63) == 63;
    if (lane >= 60) good &= __shfl_down(lane, 1) == (lane == 63 ? 63 : lane + 1) && __popcll(__ballot(1)) == 4;
    good &= __shfl_xor(static_cast<int>(lane), 32) == (static_cast<int>(lane) ^ 32);
    good &= __builtin_amdgcn_readfirstlane(lane) == 0;
    const float4 two = make_float4(1, 1, 1, 1) + make_float4(1, 1, 1, 1);
    const int64_t i = hipBlockIdx_x * static_cast<int64_t>(hipBlockDim_x) + hipThreadIdx_x;
    room[threadIdx.x] = two.x;
    __builtin_amdgcn_s_barrier();
    if (i < n) y[i] = good ? x[i] * factor * room[127 - threadIdx.x] / 2 : -1.0f;
}
"""


async def test_the_pieces_of_hip_run_in_waves_of_64(task: Task, run: Run) -> None:
    launch = (
        "hipLaunchKernelGGL(pieces, dim3((rows * columns + 127) / 128), dim3(128), 512, stream, x, factor, y,"
        " rows * columns);"
    )
    result = await run(task, "hip", scaled(WAVE, launch, "hip"))
    assert result.status is Status.PASSED, f"{result.cause} {result.detail}"


DIVERGENT = """
__global__ void stray(const float* x, float factor, float* y, int64_t n) {
    if (threadIdx.x < 7) {
        __syncthreads();
    } else {
        __syncthreads();
    }
    const int64_t i = blockIdx.x * 64 + threadIdx.x;
    if (i < n) y[i] = x[i] * factor;
}
"""
LAUNCH = "stray<<<(rows * columns + 63) / 64, 64, 0, stream>>>(x, factor, y, rows * columns);"


async def test_barriers_that_diverge_are_named_by_their_lines(task: Task, run: Run) -> None:
    result = await run(task, "cuda", scaled(DIVERGENT, LAUNCH))
    assert result.status is Status.RUNTIME_ERROR
    assert "divergent __syncthreads" in result.detail
    assert "kernel.cu:5" in result.detail and "kernel.cu:7" in result.detail, result.detail


async def test_a_warp_that_waits_for_lanes_that_never_come_is_named(task: Task, run: Run) -> None:
    text = DIVERGENT.replace("__syncthreads();", "__syncwarp();", 1)
    result = await run(task, "cuda", scaled(text, LAUNCH))
    assert result.status is Status.RUNTIME_ERROR
    assert "waits at the warp operation of kernel.cu:5 for lanes 0xffffffff" in result.detail, result.detail


async def test_a_launch_that_no_device_takes_is_not_launched(task: Task, run: Run) -> None:
    wide = LAUNCH.replace("63) / 64, 64", "2047) / 2048, 2048")
    result = await run(task, "cuda", scaled(DIVERGENT, wide))
    assert result.status is Status.INCORRECT_NUMERICAL and result.cause == "output_not_written"
    assert "more than 1024 threads a block" in result.detail


async def test_an_error_has_its_place_in_the_solution(task: Task, tmp_path: Path) -> None:
    built = await emulated(task, "cuda", scaled(DIVERGENT.replace("* factor", "* factr"), LAUNCH), tmp_path)
    assert not built.library and not built.reason
    assert (built.diagnostics[0].file, built.diagnostics[0].line) == ("kernel.cu", 10)
    assert "kernel.cu:10: the emulation does not take this source" in built.why_not()


# --- the transformation, and what is left alone --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "callee"),
    [
        ("k<<<1, 2>>>(a);", "k"),
        ("ns::k<float, (3 > 2), X<int>><<<g, b>>>(f(a, b), c);", "ns::k<float, (3 > 2), X<int>>"),
        ("table[i]<<<dim3(a, b), cdiv<4>(n), 0, s>>>(a);", "table[i]"),
        ("if (x) this->template run<T><<<g,\n b>>>(a);", "this->template run<T>"),
        ("#define L(K, G) K<<<G, 2>>>(a)", "K"),
    ],
)
def test_a_launch_becomes_a_call_of_the_same_kernel(text: str, callee: str) -> None:
    new = rewritten(text)
    assert f"{{ {callee}(simt_a...); }})(" in new and "<<<" not in new
    assert new.count("\n") == text.count("\n")


@pytest.mark.parametrize(
    "text", ["// k<<<1, 2>>>(a);\n", '"k<<<1, 2>>>(a)"', 'R"(k<<<1, 2>>>(a))"', "x = a << b >> c;", "'\\''"]
)
def test_what_is_no_launch_stays(text: str) -> None:
    assert rewritten(text) == text


REASONS = {
    '__global__ void k() {\n  asm volatile("wgmma.fence;"); }': "kernel.cu:2: asm: inline assembly",
    "#include <cutlass/gemm.h>\n": "kernel.cu:1: #include <cutlass/gemm.h>: CUTLASS",
    "#include <cublas_v2.h>\n": "vendors' libraries",
    "#include <mma.h>\n": "tensor cores",
    "void f(CUtensorMap m);": "tensor memory accelerator",
    "d = __builtin_amdgcn_mfma_f32_32x32x8f16(a, b, c, 0, 0, 0);": "tensor cores",
    "x = __builtin_amdgcn_update_dpp(a, b, 0, 0, 0, 0);": "this builtin has no emulation",
    "float v = tex2D<float>(t, x, y);": "textures",
    "__device__ void f() {\n\n  k<<<1, 1>>>(); }": "kernel.cu:3: a kernel that launches kernels",
}


@pytest.mark.parametrize("text", REASONS)
def test_what_cannot_be_emulated_is_found_before_compilation(text: str) -> None:
    assert REASONS[text] in unsupported({"kernel.cu": text})


@pytest.mark.parametrize(
    "text",
    [
        "// asm and wgmma in words\n",
        '#if __CUDA_ARCH__ >= 900\n asm("wgmma");\n#else\n plain();\n#endif\n',
        '__global__ void k() {}\nvoid f() { k<<<1, 1>>>(); const char* s = "cublas"; }',
        "__builtin_amdgcn_s_barrier();",
    ],
)
def test_what_can_be_emulated_is_not_refused(text: str) -> None:
    assert unsupported({"kernel.cu": text}) == ""
