"""The cpp toolkit against the real compiler."""

import ctypes
from pathlib import Path

import anyio
import pytest

from toolkits.core.errors import InvalidInput
from toolkits.core.schema import Axis, Check, Distribution, Solution, Task, TensorSpec, Tunable, Workload
from toolkits.core.signature import c_header, c_signature, python_signature, size_of
from toolkits.cpp import TOOLKIT, CppToolkit

pytestmark = pytest.mark.anyio

SCALE = """#include "task.h"
extern "C" void scale(const float* x, float factor, float* y, int64_t rows) {
    for (int64_t i = 0; i < rows * columns; ++i) y[i] = factor * x[i];
}
"""


def scale_task(**changes: object) -> Task:
    return Task(
        name="scale",
        title="Scale",
        op_type="elementwise",
        description="y = factor * x",
        axes={"rows": Axis(type="var"), "columns": Axis(type="const", value=4)},
        inputs={
            "x": TensorSpec(shape=["rows", "columns"], dtype="float32"),
            "factor": TensorSpec(shape=None, dtype="float32"),
        },
        outputs={"y": TensorSpec(shape=["rows", "columns"], dtype="float32")},
        checks=[Check(output="y", rule="allclose", tolerance=1e-6)],
        distributions={"normal": Distribution(description="standard normal")},
        correctness=[{"rows": 2}],
        baselines=["torch"],
        start="naive",
        workloads=[Workload(uuid="rows-8", axes={"rows": 8})],
        folder=Path("scale"),
        content_hash="0",
    ).model_copy(update=changes)


def solution(source: str = SCALE, **changes: object) -> Solution:
    fields = {"task": "scale", "toolkit": "cpp", "entry_point": "kernel.cpp::scale", "sources": {"kernel.cpp": source}}
    return Solution.model_validate(fields | changes)


def test_the_signature_lists_inputs_outputs_and_variable_axes() -> None:
    expected = 'extern "C" void scale(const float* x, float factor, float* y, int64_t rows)'
    assert c_signature(scale_task(), "scale") == expected
    assert "constexpr int64_t columns = 4;" in c_header(scale_task(), "scale")
    assert python_signature(scale_task()) == "def run(x: torch.Tensor, factor: float, y: torch.Tensor) -> None"


def test_an_axis_and_a_tensor_of_one_name_are_refused() -> None:
    task = scale_task(axes={"x": Axis(type="var"), "columns": Axis(type="const", value=4)})
    with pytest.raises(InvalidInput, match="x names two arguments"):
        c_header(task, "scale")


def test_axis_expressions_are_arithmetic_and_nothing_else() -> None:
    assert size_of("2*tokens-1", {"tokens": 5}) == 9
    assert size_of("(tokens+3)//4", {"tokens": 5}) == 2
    for text in ("__import__('os')", "tokens**9", "heads", "tokens//0", "2*"):
        with pytest.raises(InvalidInput, match="axis expression"):
            size_of(text, {"tokens": 5})


async def test_a_solution_becomes_a_library_that_runs(tmp_path: Path) -> None:
    result = await TOOLKIT.compile(scale_task(), solution(), tmp_path)
    assert result.ok and result.artifact and not result.cached
    assert "g++" in result.toolchain or "clang" in result.toolchain
    x, y = (ctypes.c_float * 4)(1, 2, 3, 4), (ctypes.c_float * 4)()
    ctypes.CDLL(str(result.artifact)).scale(x, ctypes.c_float(2), y, ctypes.c_int64(1))
    assert list(y) == [2, 4, 6, 8]


async def test_the_same_content_is_built_once(tmp_path: Path) -> None:
    first = await TOOLKIT.compile(scale_task(), solution(), tmp_path)
    again = await TOOLKIT.compile(scale_task(), solution(description="other prose"), tmp_path)
    assert again.cached and again.artifact == first.artifact


@pytest.mark.parametrize(
    "changed",
    [
        {"flags": ["-O1"]},
        {"tunables": {"UNROLL": Tunable(values=[1, 2], default=1)}},
        {"source": SCALE + "// more\n"},
    ],
)
async def test_a_change_that_decides_what_runs_is_a_new_build(tmp_path: Path, changed: dict[str, object]) -> None:
    first = await TOOLKIT.compile(scale_task(), solution(), tmp_path)
    other = await TOOLKIT.compile(scale_task(), solution(**changed), tmp_path)  # pyright: ignore[reportArgumentType]
    assert not other.cached and other.artifact != first.artifact


async def test_profile_builds_are_kept_apart_and_carry_lines(tmp_path: Path) -> None:
    timed = await TOOLKIT.compile(scale_task(), solution(), tmp_path)
    profiled = await TOOLKIT.compile(scale_task(), solution(flags=["-march=native"]), tmp_path, "profile")
    assert profiled.artifact != timed.artifact
    marches = [flag for flag in profiled.command if flag.startswith("-march")]
    assert marches[-1] == "-march=x86-64-v3" and "-g" in profiled.command


async def test_builds_of_the_same_content_at_the_same_time_agree(tmp_path: Path) -> None:
    artifacts: list[Path | None] = []

    async def build() -> None:
        artifacts.append((await CppToolkit().compile(scale_task(), solution(), tmp_path)).artifact)

    async with anyio.create_task_group() as group:
        group.start_soon(build)
        group.start_soon(build)
    assert len(set(artifacts)) == 1 and artifacts[0] and artifacts[0].exists()
    assert not list(tmp_path.glob(".work-*"))


async def test_a_damaged_build_is_made_again(tmp_path: Path) -> None:
    first = await TOOLKIT.compile(scale_task(), solution(), tmp_path)
    assert first.artifact
    first.artifact.unlink()
    again = await TOOLKIT.compile(scale_task(), solution(), tmp_path)
    assert again.ok and not again.cached and again.artifact and again.artifact.exists()


async def test_an_error_comes_first_with_its_place_in_the_solution(tmp_path: Path) -> None:
    source = SCALE.replace("{\n", "{\n    int unused = 1;\n", 1).replace("factor * x[i]", "factr * x[i]")
    result = await TOOLKIT.compile(scale_task(), solution(source, flags=["-Wall"]), tmp_path)
    assert not result.ok and result.artifact is None
    first = result.diagnostics[0]
    assert (first.severity, first.file, first.line) == ("error", "kernel.cpp", 4)
    assert "factr" in first.message and first.column
    assert any(diagnostic.severity == "warning" for diagnostic in result.diagnostics)
    assert str(tmp_path) not in result.log and "kernel.cpp:4" in result.log
    assert (await TOOLKIT.compile(scale_task(), solution(source, flags=["-Wall"]), tmp_path)).cached


async def test_a_library_with_warnings_keeps_them(tmp_path: Path) -> None:
    source = SCALE.replace("{\n", "{\n    int unused = 1;\n", 1)
    result = await TOOLKIT.compile(scale_task(), solution(source, flags=["-Wall"]), tmp_path)
    assert result.ok
    assert [(d.severity, d.line) for d in result.diagnostics] == [("warning", 3)]


async def test_headers_and_units_in_folders_are_found(tmp_path: Path) -> None:
    sources = {
        "src/kernel.cpp": '#include "detail/times.h"\n' + SCALE.replace("factor * x[i]", "times(factor, x[i])"),
        "src/detail/times.h": "#pragma once\nfloat times(float a, float b);\n",
        "src/detail/times.cpp": '#include "times.h"\nfloat times(float a, float b) { return a * b; }\n',
    }
    result = await TOOLKIT.compile(
        scale_task(), solution(sources=sources, entry_point="src/kernel.cpp::scale"), tmp_path
    )
    assert result.ok, result.log


async def test_an_undefined_function_is_a_build_error_and_not_a_load_error(tmp_path: Path) -> None:
    source = "float elsewhere(float);\n" + SCALE.replace("factor * x[i]", "elsewhere(x[i])")
    result = await TOOLKIT.compile(scale_task(), solution(source), tmp_path)
    assert not result.ok
    assert "undefined reference to `elsewhere" in result.diagnostics[0].message
    assert str(tmp_path) not in result.log


@pytest.mark.parametrize(
    "source",
    [
        SCALE.replace("void scale(", "void scales("),
        SCALE.replace('extern "C" void scale(', "static void scale(double ignored, "),
    ],
)
async def test_a_missing_entry_symbol_is_told_with_the_signature(tmp_path: Path, source: str) -> None:
    result = await TOOLKIT.compile(scale_task(), solution(source), tmp_path)
    assert not result.ok
    assert 'define exactly `extern "C" void scale(const float* x,' in result.diagnostics[0].message
    assert result.diagnostics[0].file == "kernel.cpp"


@pytest.mark.parametrize(
    "flag",
    [
        "-fplugin=evil.so",
        "-fpass-plugin=evil.so",
        "-fdump-tree-all",
        "-specs=evil",
        "-include",
        "@file",
        "-Wl,-rpath,/tmp",
        "-Wa,-a",
        "-fsanitize=address",
        "-fprofile-generate",
        "-mllvm",
        "-o",
        "-I/etc",
        "kernel2.cpp",
    ],
)
async def test_a_flag_that_reaches_beyond_code_generation_is_refused(tmp_path: Path, flag: str) -> None:
    with pytest.raises(InvalidInput, match="is refused"):
        await TOOLKIT.compile(scale_task(), solution(flags=[flag]), tmp_path)


@pytest.mark.parametrize("name", ["../escape.h", "/etc/escape.h"])
async def test_a_source_path_outside_the_solution_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match="stay inside the solution"):
        await TOOLKIT.compile(scale_task(), solution(sources={"kernel.cpp": SCALE, name: ""}), tmp_path)


async def test_a_compiler_that_does_not_end_is_stopped_and_not_remembered(tmp_path: Path) -> None:
    endless = "constexpr long f() { long s = 0; for (long i = 0; i < 1L << 40; ++i) s += i; return s; }\n"
    slow = solution(
        endless + "constexpr long g = f();\n" + SCALE,
        flags=["-fconstexpr-ops-limit=9000000000000", "-fconstexpr-loop-limit=2147483647"],
    )
    result = await CppToolkit(limit_s=1).compile(scale_task(), slow, tmp_path)
    assert not result.ok and result.diagnostics[0].message.startswith("compile_timeout")
    assert list(tmp_path.iterdir()) == []
