"""The cuda toolkit against its real compilers and sources whose faults are known."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.toolkits.test_cpp import scale_task
from toolkits.core import sandbox
from toolkits.core.errors import InvalidInput
from toolkits.core.gpu import launches, names, occupancy, toolchain
from toolkits.core.gpu.arch import NVIDIA, Architecture
from toolkits.core.schema import Axis, CompileResult, KernelReport, Solution
from toolkits.core.signature import device_header
from toolkits.cuda import TOOLKIT, CudaToolkit

needs_nvcc = pytest.mark.skipif(bool(TOOLKIT.missing()), reason=f"missing {TOOLKIT.missing()}")
needs_nvdisasm = pytest.mark.skipif(not toolchain.program("nvdisasm"), reason=toolchain.REMEDIES["nvdisasm"])
needs_nvrtc = pytest.mark.skipif(not toolchain.nvrtc(), reason=toolchain.REMEDIES["libnvrtc"])
pytestmark = pytest.mark.anyio

SPILLER = """
template <int N>
__global__ void __launch_bounds__(1024, 2) spiller(const float* x, float* y, int rounds) {
  float a[N];
#pragma unroll
  for (int i = 0; i < N; ++i) a[i] = x[i * 1024 + threadIdx.x];
  for (int t = 0; t < rounds; ++t) {
#pragma unroll
    for (int i = 0; i < N; ++i) a[i] = a[i] * a[(i + 7) % N] + a[(i + 3) % N];
  }
#pragma unroll
  for (int i = 0; i < N; ++i) y[i * 1024 + threadIdx.x] = a[i];
}
template __global__ void spiller<96>(const float*, float*, int);
"""
SHARED = """
__global__ void exchange(float* x) {
  __shared__ float s[16384];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = s[threadIdx.x ^ 1];
}
"""
WGMMA = """
__global__ void __launch_bounds__(128) product(const unsigned long long* d, float* out) {
  float a0 = 0, a1 = 0, a2 = 0, a3 = 0;
  asm volatile("wgmma.fence.sync.aligned;");
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%0,%1,%2,%3}, %4, %5, 1, 1, 1, 0, 0;"
    : "+f"(a0), "+f"(a1), "+f"(a2), "+f"(a3) : "l"(d[0]), "l"(d[1]));
  asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;");
  out[threadIdx.x] = a0 + a1 + a2 + a3;
}
"""
# One line a kernel: the notes name it.
ACCESSES = """#include <cstdint>
using Index = int64_t;
__device__ Index self() { return blockIdx.x * (Index)blockDim.x + threadIdx.x; }
__global__ void row_of_thread(const float* x, float* y, Index n) { float s = 0; for (Index c = 0; c < n; ++c) s += x[self() * n + c]; y[self()] = s; }
__global__ void column_of_thread(const float* x, float* y, Index n) { float s = 0; for (Index c = 0; c < n; ++c) s += x[c * n + self()]; y[self()] = s; }
__global__ void far(const float* x, float* y) { y[self()] = x[self() * 1024]; }
__global__ void four(const float4* x, float4* y) { y[self()] = x[self()]; }
__global__ void pieces(const float* x, float* y) { const float* p = x + 4 * self(); y[self()] = p[0] * p[1] + p[2] * p[3]; }
__global__ void gather(const float* x, const int* at, float* y) { y[self()] = x[at[self()]]; }
__global__ void transpose(const float* x, float* y) { __shared__ float t[32][32]; t[threadIdx.y][threadIdx.x] = x[threadIdx.y * 32 + threadIdx.x]; __syncthreads(); y[threadIdx.y * 32 + threadIdx.x] = t[threadIdx.x][threadIdx.y]; }
__global__ void padded(const float* x, float* y) { __shared__ float t[32][33]; t[threadIdx.y][threadIdx.x] = x[threadIdx.y * 32 + threadIdx.x]; __syncthreads(); y[threadIdx.y * 32 + threadIdx.x] = t[threadIdx.x][threadIdx.y]; }
"""  # noqa: E501
LAUNCHES = """
#include <cuda_runtime.h>
constexpr int kTile = 16 * 1024;
__global__ void copy(float* x) { x[threadIdx.x] *= 2; }
__global__ void __launch_bounds__(256) bounded(float* x) { x[threadIdx.x] *= 2; }
__global__ void staged(float* x) { extern __shared__ float s[]; s[threadIdx.x] = x[threadIdx.x]; __syncthreads(); x[threadIdx.x] = s[threadIdx.x ^ 1]; }
void host(float* x, int n, cudaStream_t stream) {
  RAISE
  LAUNCH
}
"""  # noqa: E501
SCALE = """#include "task.h"
__global__ void kernel(const float* x, float factor, float* y, int64_t n) {
  const int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (i < n) y[i] = factor * x[i];
}
extern "C" void scale(const float* x, float factor, float* y, int64_t rows, cudaStream_t stream) {
  kernel<<<(rows * columns + 127) / 128, 128, 0, stream>>>(x, factor, y, rows * columns);
}
"""


async def look(text: str, builds: Path, *targets: str) -> CompileResult:
    return await CudaToolkit().look({"kernel.cu": text}, targets, builds)


def solution(text: str = SCALE, **changes: object) -> Solution:
    fields = {"task": "scale", "toolkit": "cuda", "entry_point": "kernel.cu::scale", "sources": {"kernel.cu": text}}
    return Solution.model_validate(fields | changes)


def notes(kernels: Sequence[KernelReport]) -> dict[str, str]:
    return {kernel.name: "\n".join(kernel.notes) for kernel in kernels}


@needs_nvrtc
@needs_nvdisasm
async def test_a_planted_spill_is_named_with_its_bytes_and_the_line_of_most_registers(tmp_path: Path) -> None:
    (kernel,) = (await look(SPILLER, tmp_path, "sm_90a")).kernels
    assert (kernel.name, kernel.registers, kernel.threads) == ("spiller<96>", 32, 1024)
    assert (kernel.spill_stores_bytes or 0) > 400 and (kernel.stack_bytes or 0) > 200
    assert "spills" in kernel.notes[0] and "32 registers" in kernel.notes[0]
    assert kernel.instructions["LDL.32"] > 50 and kernel.instructions["STL.32"] > 50
    file, line = kernel.peak_line.split(":")
    assert file == "kernel.cu" and 4 <= int(line) <= 12 and 20 <= (kernel.peak_registers or 0) <= 32


@needs_nvcc
@needs_nvrtc
async def test_64_kb_of_static_shared_memory_do_not_fit_sm_80(tmp_path: Path) -> None:
    refused = await look(SHARED, tmp_path, "sm_80")
    assert not refused.ok
    message = refused.diagnostics[0].message
    assert "kernel exchange: 65536 bytes" in message and "sm_80" in message and "166912" in message
    (kernel,) = (await look(SHARED, tmp_path, "sm_90a")).kernels
    assert (kernel.shared_bytes, kernel.barriers) == (65536, 1)


@needs_nvcc
@needs_nvrtc
@needs_nvdisasm
async def test_a_wgmma_needs_sm_90a_and_the_answer_says_so_with_its_line(tmp_path: Path) -> None:
    refused = await look(WGMMA, tmp_path, "sm_90")
    first = refused.diagnostics[0]
    assert (refused.ok, first.file, first.line) == (False, "kernel.cu", 4)
    assert first.message.startswith("wgmma.fence does not exist on sm_90") and "sm_90a" in first.message
    task = scale_task()
    text = SCALE.replace("__global__ void kernel", WGMMA + "__global__ void kernel")
    built = await TOOLKIT.compile(task, solution(text), tmp_path, "profile")
    assert built.ok, built.log
    assert {k.target for k in built.kernels if k.name == "product"} == {"sm_90a"}
    assert next(k for k in built.kernels if k.name == "product").instructions["HGMMA"] == 1
    assert [d.severity for d in built.diagnostics if d.message.startswith("not for sm_100a: wgmma")][:1] == ["warning"]
    assert not (await TOOLKIT.compile(task, solution(text, targets=["sm_90a", "sm_100a"]), tmp_path, "profile")).ok


@needs_nvcc
@needs_nvdisasm
async def test_uncoalesced_narrow_and_conflicting_accesses_are_named_by_line_and_good_ones_are_not(
    tmp_path: Path,
) -> None:
    for target in ("sm_90a", "sm_100a"):
        found = notes((await look(ACCESSES, tmp_path, target)).kernels)
        assert "uncoalesced loads at kernel.cu:4" in found["row_of_thread"]
        assert "size known only at run time" in found["row_of_thread"]
        assert "uncoalesced loads at kernel.cu:6" in found["far"] and "4096 bytes apart" in found["far"]
        assert "uncoalesced" not in "".join(found[name] for name in ("column_of_thread", "four", "pieces", "gather"))
        assert "narrow loads" in found["pieces"] and "128 bits" in found["pieces"]
        assert "narrow" not in found["four"]
        assert "bank conflict at kernel.cu:10" in found["transpose"] and "32 of a warp" in found["transpose"]
        assert "bank conflict" not in found["padded"]


@needs_nvcc
@pytest.mark.parametrize(
    ("launch", "raised", "says"),
    [
        ("copy<<<n, 2048, 0, stream>>>(x);", False, "2048 threads a block, at most 1024"),
        ("dim3 block(64, 32); copy<<<n, block>>>(x);", False, "2048 threads a block, at most 1024"),
        ("bounded<<<n, 512, 0, stream>>>(x);", False, "__launch_bounds__ promised at most 256"),
        ("staged<<<n, 128, kTile * sizeof(float), stream>>>(x);", False, "cudaFuncSetAttribute"),
        ("staged<<<n, 128, 15 * kTile, stream>>>(x);", True, "a block has at most 232448"),
    ],
)
async def test_a_launch_that_must_fail_is_an_error_with_its_line_before_any_launch(
    tmp_path: Path, launch: str, raised: bool, says: str
) -> None:
    raising = "cudaFuncSetAttribute(staged, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 17);" if raised else ""
    built = await look(LAUNCHES.replace("RAISE", raising).replace("LAUNCH", launch), tmp_path, "sm_90a")
    first = built.diagnostics[0]
    assert (built.ok, first.severity, first.file, first.line) == (False, "error", "kernel.cu", 9), built.log
    assert "would fail on sm_90a" in first.message and says in first.message


@needs_nvcc
async def test_launches_that_fit_and_those_that_cannot_be_read_are_no_errors(tmp_path: Path) -> None:
    good = "staged<<<n, 128, kTile * sizeof(float), stream>>>(x); copy<<<n, n, n>>>(x); bounded<<<n, 256>>>(x);"
    raising = "cudaFuncSetAttribute(staged, cudaFuncAttributeMaxDynamicSharedMemorySize, kTile * 4);"
    built = await look(LAUNCHES.replace("RAISE", raising).replace("LAUNCH", good), tmp_path, "sm_90a")
    assert built.ok
    staged = next(kernel for kernel in built.kernels if kernel.name == "staged")
    assert (staged.threads, staged.dynamic_shared_bytes) == (128, 65536)
    assert (staged.occupancy, staged.occupancy_limit) == (0.1875, "shared memory")


@needs_nvcc
async def test_too_many_registers_for_a_block_and_too_large_a_cluster_are_foreseen(tmp_path: Path) -> None:
    text = SPILLER.replace("__launch_bounds__(1024, 2) ", "").replace("<96>", "<80>") + (
        "__global__ void __cluster_dims__(32, 1, 1) wide(int* x) { x[threadIdx.x] = 1; }\n"
        "void host(float* x) { spiller<80><<<1, 1024>>>(x, x, 3); }\n"
    )
    built = await look(text, tmp_path, "sm_90a")
    cluster, registers = sorted(built.diagnostics[:2], key=lambda one: "registers" in one.message)
    assert "threads with" in registers.message and "65536 exist" in registers.message and registers.line == 16
    assert "clusters of 32 blocks, at most 16" in cluster.message and cluster.line == 15


@needs_nvcc
async def test_a_solution_is_reported_for_each_target_and_answered_from_the_cache(tmp_path: Path) -> None:
    first = await CudaToolkit().compile(scale_task(), solution(), tmp_path, "profile")
    assert first.ok, first.log
    assert [(k.name, k.target) for k in first.kernels] == [("kernel", "sm_90a"), ("kernel", "sm_100a")]
    assert all((k.threads, k.occupancy, k.spill_stores_bytes) == (128, 1.0, 0) for k in first.kernels)
    assert first.toolchain.startswith("nvcc")
    again = await CudaToolkit().compile(scale_task(), solution(description="prose"), tmp_path, "profile")
    assert again.cached and again.kernels == first.kernels
    other = await CudaToolkit().compile(scale_task(), solution(targets=["sm_80"]), tmp_path, "profile")
    assert not other.cached and [k.target for k in other.kernels] == ["sm_80"]
    assert not list(tmp_path.glob(".work-*")) and not list(tmp_path.glob("*/tmp"))


@needs_nvcc
async def test_errors_of_a_solution_have_their_place_and_a_missing_entry_is_told(tmp_path: Path) -> None:
    broken = await TOOLKIT.compile(scale_task(), solution(SCALE.replace("factor * x", "factr * x")), tmp_path)
    first = broken.diagnostics[0]
    assert (broken.ok, first.file, first.line) == (False, "kernel.cu", 4)
    assert "factr" in first.message and "factr" in broken.log and str(tmp_path) not in broken.log
    unnamed = await TOOLKIT.compile(scale_task(), solution(SCALE.replace(" scale(", " other(")), tmp_path)
    assert 'define exactly `extern "C" void scale(' in unnamed.diagnostics[0].message
    assert "cudaStream_t stream)" in unnamed.diagnostics[0].message
    undefined = SCALE.replace("__global__", "__device__ float twice(float);\n__global__", 1).replace(
        "factor * x[i]", "twice(x[i])"
    )
    result = await TOOLKIT.compile(scale_task(), solution(undefined), tmp_path)
    assert any("device function twice" in one.message for one in result.diagnostics if one.severity == "error")


@needs_nvcc
@needs_nvrtc
@pytest.mark.skipif(not sandbox.mechanism().bwrap, reason="no boxes on this machine")
@pytest.mark.parametrize("host", ["", "#include <cstdio>\n"])
async def test_an_include_of_a_private_file_shows_nothing_of_it(tmp_path: Path, host: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text("confidential words\n", encoding="utf-8")
    built = await look(f'{host}#include "{secret}"\n__global__ void k() {{}}\n', tmp_path / "builds", "sm_90a")
    assert not built.ok and "confidential" not in built.model_dump_json()


@needs_nvrtc
async def test_files_of_kernels_alone_go_through_nvrtc_and_are_cached(tmp_path: Path) -> None:
    text = "#include <cuda_fp16.h>\n__global__ void __launch_bounds__(96) h(__half* x) { x[threadIdx.x] = 0; }\n"
    first = await look(text, tmp_path, "sm_90a", "sm_120a")
    assert first.ok and "NVRTC" in first.toolchain and "nvcc" not in " ".join(first.command)
    assert [(k.target, k.threads) for k in first.kernels] == [("sm_90a", 96), ("sm_120a", 96)]
    assert (await look(text, tmp_path, "sm_90a", "sm_120a")).cached


async def test_callers_mistakes_are_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="sm_9x"):
        await look(SHARED, tmp_path, "sm_9x")
    with pytest.raises(InvalidInput, match=r"no \.cu file"):
        await look("int x;", tmp_path)
    with pytest.raises(InvalidInput, match=r"-Xcompiler.*refused"):
        await TOOLKIT.compile(scale_task(), solution(flags=["-Xcompiler=-fplugin=x"]), tmp_path)
    with pytest.raises(InvalidInput, match=r"must be a \.cu file"):
        await TOOLKIT.compile(scale_task(), solution(entry_point="a.cpp::scale", sources={"a.cpp": SCALE}), tmp_path)


def test_the_header_has_device_pointers_and_ends_with_the_stream() -> None:
    header = device_header(
        scale_task(axes={"rows": Axis(type="var"), "columns": Axis(type="const", value=4)}), "hip", "f"
    )
    assert "#include <hip/hip_runtime.h>" in header and "constexpr int64_t columns = 4;" in header
    assert 'extern "C" void f(const float* x, float factor, float* y, int64_t rows, hipStream_t stream);' in header
    assert header.count('extern "C"') == 1


def test_names_are_those_of_the_source() -> None:
    spelled = {
        "void spiller<96>(float const*, float*, int)": "spiller<96>",
        "void a::(anonymous namespace)::k<(int)3, a::T<float> >(int, void (*)(int))": "a::k<3, a::T<float> >",
        "plain": "plain",
    }
    assert {name: names.short(name) for name in spelled} == spelled
    assert names.base("a::k<3>") == "k"


def test_importing_the_toolkit_loads_no_driver_library_and_no_torch() -> None:
    code = "import sys, toolkits.cuda; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "numpy", "cuda", "cupy", "pynvml", "triton"} & set(done.stdout.split())


CALCULATOR = """
#include <climits>
#include <initializer_list>
#include <cstdio>
#include <cstdlib>
#include "cuda_occupancy.h"
int main(int, char** a) {
  cudaOccDeviceProp p{};
  p.computeMajor = atoi(a[1]), p.computeMinor = atoi(a[2]), p.maxThreadsPerBlock = 1024, p.warpSize = 32;
  p.maxThreadsPerMultiprocessor = atoi(a[3]), p.regsPerBlock = p.regsPerMultiprocessor = 65536, p.numSms = 1;
  p.sharedMemPerBlock = 49152, p.sharedMemPerMultiprocessor = atoi(a[4]), p.sharedMemPerBlockOptin = atoi(a[5]);
  p.reservedSharedMemPerBlock = atoi(a[6]);
  cudaOccDeviceState state;
  for (int threads = 32; threads <= 1024; threads += 32)
    for (int registers : {16, 32, 37, 64, 72, 96, 168, 255})
      for (int shared : {0, 1000, 20000, 40000, 90000}) {
        cudaOccFuncAttributes f{};
        f.maxThreadsPerBlock = INT_MAX, f.numRegs = registers, f.sharedSizeBytes = shared;
        f.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
        cudaOccResult r;
        if (cudaOccMaxActiveBlocksPerMultiprocessor(&r, &p, &f, &state, threads, 0)) return 1;
        printf("%d %d %d %d\\n", threads, registers, shared, r.activeBlocksPerMultiprocessor);
      }
}
"""


def test_occupancy_is_that_of_nvidias_own_calculator(tmp_path: Path) -> None:
    headers = [folder for folder in toolchain.includes() if (folder / "cuda_occupancy.h").is_file()]
    if not headers:
        pytest.skip(f"cuda_occupancy.h comes with nvcc: {toolchain.REMEDIES['nvcc']}")
    (tmp_path / "c.cpp").write_text(CALCULATOR, encoding="utf-8")
    subprocess.run(["g++", "-w", f"-I{headers[0]}", "c.cpp", "-o", "c"], cwd=tmp_path, check=True)
    for of in NVIDIA.values():
        done = subprocess.run([tmp_path / "c", *_properties(of)], capture_output=True, text=True, check=True)
        rows = [[int(word) for word in line.split()] for line in done.stdout.splitlines()]
        assert len(rows) == 32 * 8 * 5
        for threads, registers, shared, blocks in rows:
            ours = occupancy.occupancy(of, threads, registers, shared).blocks
            assert ours == blocks or shared + 1024 > of.block_shared_bytes, (of.name, threads, registers, shared)


def _properties(of: Architecture) -> list[str]:
    number = int(of.name.removeprefix("sm_"))
    sizes = (of.threads, of.shared_bytes, of.block_shared_bytes, of.reserved_shared_bytes)
    return [str(value) for value in (number // 10, number % 10, *sizes)]


def test_hostile_sources_are_read_in_no_time() -> None:
    size = 300_000
    for text in ("/*" * size, '"\\' * size, "a" * size, "a " + " " * size, "const int a = " * 20_000, "f(" * size):
        assert launches.launches({"kernel.cu": text}, {}) == []
    assert len(launches.launches({"kernel.cu": "#define A 1\n" * 50_000 + "k<<<A, A << 40 << 40>>>();"}, {})) == 1
