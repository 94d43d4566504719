"""The triton toolkit: compiled for four GPUs that are not here, judged by the interpreter, faults named with lines."""

import re
from pathlib import Path

import pytest

from tests.toolkits.conftest import Evaluate
from toolkits.core.errors import InvalidInput
from toolkits.core.schema import Check, CompileResult, KernelReport, Solution, Status, Task, TensorSpec
from toolkits.core.toolkit import get_toolkit
from toolkits.triton import TritonToolkit

pytestmark = pytest.mark.anyio
TRITON = get_toolkit("triton")
ROOT = Path(__file__).parents[3]
if TRITON.missing():
    pytest.skip(f"needs {TRITON.missing()}", allow_module_level=True)

SCALE = """
import triton
import triton.language as tl


def scale(x, factor, y):
    n = x.numel()
    scaled[(triton.cdiv(n, 1024),)](x, y, factor, n, BLOCK=1024)


@triton.jit
def scaled(x, y, factor, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + i, mask=i < n)
    tl.store(y + i, value * factor, mask=i < n)
"""
TUNED = (
    SCALE.replace(", BLOCK=1024)", ")")
    .replace("cdiv(n, 1024)", "cdiv(n, 64)")
    .replace(
        "@triton.jit",
        """@triton.autotune(
    configs=[triton.Config({"BLOCK": 64}, num_warps=warps, num_stages=s) for warps in (1, 2, 4) for s in (2, 3)],
    key=["n"],
)
@triton.jit""",
    )
)


def triton(text: str = SCALE, **fields: object) -> Solution:
    """A Triton solution of the scale task."""
    given = {"task": "scale", "toolkit": "triton", "entry_point": "main.py::scale", "sources": {"main.py": text}}
    return Solution.model_validate(given | fields)


async def built(task: Task, builds: Path, text: str = SCALE, **fields: object) -> CompileResult:
    return await TRITON.compile(task, triton(text, **fields), builds)


def errors(result: CompileResult) -> list[str]:
    return [one.message for one in result.diagnostics if one.severity == "error"]


def one(result: CompileResult, target: str) -> KernelReport:
    (found,) = [kernel for kernel in result.kernels if kernel.target == target]
    return found


async def test_a_kernel_is_compiled_for_four_targets_and_kept_by_content(task: Task, tmp_path: Path) -> None:
    result = await built(task, tmp_path)
    assert result.ok, result.diagnostics
    assert [kernel.target for kernel in result.kernels] == ["sm_90", "sm_100", "gfx942", "gfx950"]
    for target in ("sm_90", "sm_100"):
        kernel = one(result, target)
        assert kernel.registers and kernel.threads == 128 and kernel.stack_bytes == 0 and kernel.spill_stores_bytes == 0
        # As wide as that only because the arguments' addresses were seen to be multiples of 16.
        assert kernel.instructions["LDG.128"] and kernel.instructions["STG.128"]
    for target in ("gfx942", "gfx950"):
        kernel = one(result, target)
        assert kernel.registers and kernel.scalar_registers and kernel.threads == 256
        assert any(re.match(r"(buffer|global)_load_dwordx4", name) for name in kernel.instructions)
    again = await built(task, tmp_path)
    assert again.cached and again.kernels == result.kernels and again.artifact == result.artifact


async def test_the_interpreter_judges_and_never_times(evaluate: Evaluate) -> None:
    result = await evaluate(triton(targets=["gfx942"]), "full")
    assert result.status is Status.PASSED and "interpreter" in result.not_timed, result.detail
    assert all(one.latency_us is None for one in result.measurements)


@pytest.mark.parametrize("mutant", ["value + factor", "value * factor * (i < n - 1)"])
async def test_a_wrong_kernel_is_rejected(evaluate: Evaluate, mutant: str) -> None:
    result = await evaluate(triton(SCALE.replace("value * factor", mutant), targets=["gfx942"]))
    assert result.status is Status.INCORRECT_NUMERICAL, result.detail


async def test_configurations_are_listed_counted_and_bounded(task: Task, tmp_path: Path, evaluate: Evaluate) -> None:
    result = await built(task, tmp_path / "builds", TUNED, targets=["sm_90"])
    assert result.ok, result.diagnostics
    assert [kernel.threads for kernel in result.kernels] == [32, 32, 64, 64]
    assert result.kernels[0].name.startswith("scaled [BLOCK: 64, num_warps: 1")
    note = "tuned over 6 configurations, of which 4 were compiled here: BLOCK: 64, num_warps: 1"
    assert result.kernels[0].notes[-1].startswith(note)
    assert (await evaluate(triton(TUNED, targets=["sm_90"]))).status is Status.PASSED


async def test_after_its_time_no_further_configuration_is_begun(task: Task, tmp_path: Path) -> None:
    result = await TritonToolkit(tuning_s=0.0).compile(task, triton(TUNED, targets=["gfx942"]), tmp_path)
    assert result.ok and [kernel.threads for kernel in result.kernels] == [64]
    assert result.kernels[0].notes[-1].startswith("tuned over 6 configurations, of which 1 was compiled here: ")


MANY = """
import triton
import triton.language as tl


def scale(x, factor, y):
    held[(1,)](x, y, factor, BLOCK=8192, num_warps=1)


@triton.jit
def held(x, y, factor, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    value = tl.load(x + i)
    tl.store(y + i, value * tl.sum(value) * factor)
"""


async def test_planted_spills_are_named(task: Task, tmp_path: Path) -> None:
    result = await built(task, tmp_path, MANY, targets=["sm_90"])
    assert result.ok, result.diagnostics
    kernel = one(result, "sm_90")
    assert kernel.stack_bytes and kernel.spill_stores_bytes and kernel.spill_loads_bytes
    assert kernel.notes[0].startswith(f"spills {kernel.spill_stores_bytes} bytes to local memory")


PRODUCT = """
import triton
import triton.language as tl


def scale(x, factor, y):
    product[(1,)](x.half(), y, factor, SIDE=64)


@triton.jit
def product(x, y, factor, SIDE: tl.constexpr):
    i = tl.arange(0, SIDE)
    at = i[:, None] * SIDE + i[None, :]
    a, b = tl.load(x + at), tl.load(x + SIDE * SIDE + at)
    tl.store(y + at, tl.dot(a, b) * factor)
"""


async def test_matrix_instructions_are_counted(task: Task, tmp_path: Path) -> None:
    result = await built(task, tmp_path, PRODUCT)
    assert result.ok, result.diagnostics
    for target, kind in (("sm_90", "HGMMA"), ("sm_100", "UTC"), ("gfx942", "v_mfma"), ("gfx950", "v_mfma")):
        assert any(name.startswith(kind) for name in one(result, target).instructions), target


async def test_too_much_shared_memory_is_an_error_before_any_launch(task: Task, tmp_path: Path) -> None:
    text = PRODUCT.replace("SIDE=64", "SIDE=256, num_warps=8")
    result = await built(task, tmp_path, text, targets=["gfx942"])
    assert not result.ok
    (error,) = [one for one in result.diagnostics if one.severity == "error"]
    assert re.match(r"launch of product would fail: it needs \d+ bytes of shared memory and a block has", error.message)
    assert (error.file, error.line) == ("main.py", 10)


NARROW = """
import torch
import triton
import triton.language as tl


def scale(x, factor, y):
    n = x.numel()
    scaled[(triton.cdiv(n, 1024),)](x.to(torch.bfloat16), y, factor, n, SIDE=32)


@triton.jit
def scaled(x, y, factor, n, SIDE: tl.constexpr):
    lane = tl.arange(0, SIDE)
    i = tl.program_id(0) * SIDE * SIDE + lane[:, None] * SIDE + lane
    value = tl.load(x + i, mask=i < n, other=0.0)
    unit = (lane[:, None] == lane).to(tl.bfloat16)
    doubled = tl.dot(value + value, unit)
    tl.store(y + i, doubled.to(tl.bfloat16) * (factor / 2), mask=i < n)
"""


async def test_bfloat16_is_widened_in_the_interpreter_which_cannot_compute_in_it(evaluate: Evaluate) -> None:
    outputs = {"y": TensorSpec(shape=["rows", "columns"], dtype="bfloat16")}
    checks = [Check(output="y", rule="rel_l2", tolerance=4e-3)]
    changes = {"outputs": outputs, "checks": checks, "content_hash": "scale in bfloat16"}
    result = await evaluate(triton(NARROW, targets=["gfx942"]), "full", **changes)
    assert result.status is Status.PASSED, result.detail
    assert "bfloat16 are more exact than on a GPU" in result.not_timed
    wrong = NARROW.replace("value + value", "value + 2 * value")
    result = await evaluate(triton(wrong, targets=["gfx942"]), "check", **changes)
    assert result.status is Status.INCORRECT_NUMERICAL, result.detail


async def test_an_error_of_the_compiler_has_its_line(task: Task, tmp_path: Path) -> None:
    result = await built(task, tmp_path, SCALE.replace("value * factor", "value * facto"), targets=["sm_90", "gfx942"])
    (error,) = [one for one in result.diagnostics if one.severity == "error"]
    assert not result.ok and "facto is not defined" in error.message
    assert (error.file, error.line) == ("main.py", 15)


async def test_an_error_of_the_host_code_has_its_line(task: Task, tmp_path: Path) -> None:
    result = await built(task, tmp_path, SCALE.replace("n = x.numel()", "n = x.number()"), targets=["sm_90", "gfx942"])
    (error,) = [one for one in result.diagnostics if one.severity == "error"]
    assert error.message.startswith("AttributeError: 'Tensor' object has no attribute 'number'")
    assert (error.file, error.line) == ("main.py", 7)


async def test_a_solution_that_launches_nothing_is_told_so(task: Task, tmp_path: Path) -> None:
    result = await built(task, tmp_path, "def scale(x, factor, y):\n    y.copy_(x * factor)\n")
    assert errors(result) == ["the call launches no @triton.jit kernel"]


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            "tl.load(x + i, mask=i < n)",
            "tl.load(x + i)",
            r"main.py:14: tl.load reads 0 bytes past the end of x \(element",
        ),
        ("tl.store(y + i,", "tl.store(y + i - 1,", r"main.py:15: tl.store writes 4 bytes before y \(element 0 of the"),
    ],
)
async def test_what_leaves_its_tensors_is_named_with_its_line(
    evaluate: Evaluate, old: str, new: str, told: str
) -> None:
    result = await evaluate(triton(SCALE.replace(old, new), targets=["gfx942"]))
    assert result.status is Status.RUNTIME_ERROR, result.detail
    assert re.search(told, result.detail), result.detail


async def test_what_the_toolkit_cannot_use_is_refused(task: Task, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="neither compiler flags nor tunables"):
        await built(task, tmp_path, flags=["-O3"])
    with pytest.raises(InvalidInput, match="target 'gfx1' is no"):
        await built(task, tmp_path, targets=["gfx1"])
    with pytest.raises(InvalidInput, match="target 'sm_1' is not known"):
        await built(task, tmp_path, targets=["sm_1"])
