"""C++ and CUDA solutions that take tensors: FlashInfer Trace's bindings, built for real and judged like any other."""

from importlib.util import find_spec
from pathlib import Path

import pytest
from pydantic import ValidationError

from tests.toolkits.conftest import Evaluate
from toolkits.core import bindings, crashes, profiling, sandbox, sanitize
from toolkits.core.errors import ToolkitUnavailable
from toolkits.core.schema import CompileResult, Solution, Status, Task
from toolkits.core.toolkit import get_toolkit

pytestmark = pytest.mark.anyio
needs_tvm_ffi = pytest.mark.skipif(not find_spec("tvm_ffi"), reason=bindings.missing("tvm-ffi"))
needs_torch_headers = pytest.mark.skipif(bool(bindings.missing("torch")), reason=bindings.missing("torch"))
needs_nvcc = pytest.mark.skipif(bool(get_toolkit("cuda").missing()), reason="nvcc")

TORCH = """#include <torch/extension.h>

torch::Tensor scale(const torch::Tensor& x, double factor) { return x * factor; }

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("scale", &scale); }
"""
TVM_FFI = """#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>
#include "task.h"

void scale(tvm::ffi::TensorView x, double factor, tvm::ffi::TensorView y) {
  const float* from = static_cast<const float*>(x.data_ptr());
  float* to = static_cast<float*>(y.data_ptr());
  BODY
}
"""
EXPORT = "TVM_FFI_DLL_EXPORT_TYPED_FUNC(scale, scale);\n"
LOOP = "for (int64_t i = 0; i < x.size(0) * x.size(1); ++i) to[i] = from[i] * static_cast<float>(factor);"
CUDA = """#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/extra/c_env_api.h>

__global__ void kernel(const float* x, float factor, float* y, int64_t n) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i < n) y[i] = factor * x[i];
}

void scale(tvm::ffi::TensorView x, double factor, tvm::ffi::TensorView y) {
  const int64_t n = x.size(0) * x.size(1);
  const auto stream = static_cast<cudaStream_t>(TVMFFIEnvGetStream(x.device().device_type, x.device().device_id));
  kernel<<<static_cast<unsigned>((n + 255) / 256), 256, 0, stream>>>(
      static_cast<const float*>(x.data_ptr()), static_cast<float>(factor), static_cast<float*>(y.data_ptr()), n);
}
TVM_FFI_DLL_EXPORT_TYPED_FUNC(scale, scale);
"""
TORCH_CUDA = """#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAContextLight.h>
#include <c10/cuda/CUDAStream.h>

__global__ void kernel(const float* x, float factor, float* y, int64_t n) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i < n) y[i] = factor * x[i];
}

void scale(at::Tensor x, double factor, at::Tensor y) {
  kernel<<<static_cast<unsigned>((x.numel() + 255) / 256), 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
      x.const_data_ptr<float>(), static_cast<float>(factor), y.mutable_data_ptr<float>(), x.numel());
}
"""


def bound(text: str, binding: str = "tvm-ffi", **fields: object) -> Solution:
    spec = {"task": "scale", "toolkit": "cpp", "binding": binding, "entry_point": "main.cpp::scale"}
    return Solution.model_validate(spec | {"sources": {"main.cpp": text}} | fields)


async def compiled(task: Task, solution: Solution, builds: Path) -> CompileResult:
    return await get_toolkit(solution.toolkit).compile(task, solution, builds)


@needs_torch_headers
@pytest.mark.slow
async def test_a_torch_extension_that_returns_its_tensor_passes_the_judge(evaluate: Evaluate) -> None:
    result = await evaluate(bound(TORCH, "torch", destination_passing_style=False))
    assert (result.status, result.rounds) == (Status.PASSED, 4), result.detail


@needs_tvm_ffi
async def test_a_tvm_ffi_function_passes_and_is_timed_whether_the_source_exports_it_or_not(evaluate: Evaluate) -> None:
    text = TVM_FFI.replace("BODY", LOOP)
    assert (await evaluate(bound(text))).status is Status.PASSED
    exported = await evaluate(bound(text + EXPORT), "full")
    assert exported.status is Status.PASSED, exported.detail
    assert exported.speedup and exported.measurements[0].latency_us


@needs_tvm_ffi
@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (LOOP.replace("factor);", "factor + 1);"), Status.INCORRECT_NUMERICAL, "y"),
        ('TVM_FFI_THROW(ValueError) << "no such shape";', Status.RUNTIME_ERROR, "no such shape"),
        (f"if (kColumns) {LOOP}", Status.COMPILE_ERROR, "kColumns"),
    ],
)
async def test_wrong_values_exceptions_and_errors_of_a_bound_function_are_told_as_those_of_any(
    task: Task, evaluate: Evaluate, tmp_path: Path, body: str, status: Status, said: str
) -> None:
    candidate = bound(TVM_FFI.replace("BODY", body))
    if status is Status.COMPILE_ERROR:
        build = await compiled(task, candidate, tmp_path)
        assert not build.ok and said in build.diagnostics[0].message and build.diagnostics[0].file == "main.cpp"
        return
    result = await evaluate(candidate)
    assert result.status is status and said in result.detail, result.detail


@needs_tvm_ffi
@needs_nvcc
async def test_a_bound_source_that_exports_another_name_or_reads_a_private_file_does_not_compile(
    task: Task, tmp_path: Path
) -> None:
    other = TVM_FFI.replace("BODY", LOOP).replace("void scale(", "static void inner(")
    build = await compiled(task, bound(other + EXPORT.replace("scale, scale", "scaled, inner")), tmp_path)
    assert not build.ok and "scale" in build.diagnostics[0].message
    cuda: dict[str, object] = {
        "toolkit": "cuda",
        "entry_point": "main.cu::scale",
        "targets": ["sm_90a"],
        "sources": {"main.cu": ""},
    }
    build = await compiled(task, bound("", "tvm-ffi", **cuda), tmp_path)
    assert not build.ok and EXPORT.strip() in build.diagnostics[0].message
    secret = tmp_path / "secret.h"
    secret.write_text("correct horse battery staple", encoding="utf-8")
    build = await compiled(task, bound(f'#include "{secret}"\n{TVM_FFI.replace("BODY", LOOP)}'), tmp_path / "builds")
    assert not build.ok
    assert not sandbox.mechanism().bwrap or "correct horse" not in build.log


@needs_tvm_ffi
async def test_what_cannot_follow_python_into_a_bound_function_says_so(task: Task, tmp_path: Path) -> None:
    candidate = bound(TVM_FFI.replace("BODY", LOOP))
    seen = await sanitize.sanitized(task, candidate, tmp_path)
    assert "without `binding`" in seen.skipped and not seen.findings
    assert await crashes.explained(task, candidate, tmp_path, "") == ""
    with pytest.raises(ToolkitUnavailable, match="without `binding`"):
        await profiling.profile_solution(task, candidate, task.workloads[0], tmp_path, tmp_path / "profile")


@needs_nvcc
@pytest.mark.parametrize(
    ("binding", "text"),
    [
        pytest.param("tvm-ffi", CUDA, marks=needs_tvm_ffi),
        # Torch's own CUDA headers, with the names of libraries that neither nvcc nor a torch for the CPU brings.
        pytest.param("torch", TORCH_CUDA, marks=needs_torch_headers),
    ],
)
async def test_a_bound_cuda_source_is_compiled_and_reported_on_and_not_run_without_a_device(
    task: Task, tmp_path: Path, binding: str, text: str
) -> None:
    fields: dict[str, object] = {
        "toolkit": "cuda",
        "entry_point": "main.cu::scale",
        "targets": ["sm_90a"],
        "sources": {"main.cu": text},
    }
    build = await compiled(task, bound("", binding, **fields), tmp_path)
    assert build.ok, build.diagnostics
    (kernel,) = build.kernels
    assert (kernel.name, kernel.target, kernel.registers is not None) == ("kernel", "sm_90a", True)
    assert build.artifact is None and f"function on {binding} tensors runs on a CUDA device" in build.not_timed


def test_a_binding_belongs_to_cpp_and_cuda_and_changes_no_id_of_solutions_without_one() -> None:
    with pytest.raises(ValidationError, match="binding 'torch' is for cpp and cuda solutions"):
        bound("", "torch", toolkit="python")
    plain = Solution(task="t", toolkit="cpp", entry_point="main.cpp::scale", sources={"main.cpp": ""})
    assert plain.id == "cd281a52672e1c1d" and plain.id != bound("", "torch", task="t").id != bound("", task="t").id
