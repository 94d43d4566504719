"""The opencl toolkit with the real PoCL: built in a box, judged by the same judge on the CPU, errors by line."""

from pathlib import Path

import pytest

from tests.toolkits.conftest import Evaluate
from toolkits.core.errors import InvalidInput
from toolkits.core.schema import CompileResult, Launch, Solution, Status, Task, Tunable
from toolkits.opencl import TOOLKIT

pytestmark = pytest.mark.anyio
NEEDS_POCL = pytest.mark.skipif(bool(TOOLKIT.missing()), reason=f"this machine lacks {TOOLKIT.missing()}")

ROOT = Path(__file__).parents[3]
SCALE = """__kernel void scale(__global const float* x, float factor, __global float* y, long rows, long columns) {
  const long i = get_global_id(0);
  __local float tile[GROUP];
  tile[get_local_id(0)] = i < rows * columns ? x[i] : 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (i < rows * columns) y[i] = tile[get_local_id(0)] * factor;
}
"""
WHOLE = "(rows*columns+GROUP-1)//GROUP*GROUP"


def opencl(text: str = SCALE, whole: str = WHOLE, local: str = "GROUP", **fields: object) -> Solution:
    launch = [Launch(kernel="scale", global_size=[whole], local_size=[local] if local else [])]
    known = {"task": "scale", "toolkit": "opencl", "entry_point": "kernel.cl::scale", "launch": launch}
    tunables = {"GROUP": Tunable(values=[16, 64], default=64)}
    return Solution.model_validate(known | {"tunables": tunables, "sources": {"kernel.cl": text}} | fields)


def errors(build: CompileResult) -> list[str]:
    return [f"{d.file}:{d.line} {d.message}" for d in build.diagnostics if d.severity == "error"]


@NEEDS_POCL
async def test_it_is_timed_by_the_judge_as_any_other(evaluate: Evaluate) -> None:
    result = await evaluate(opencl(), "full")
    assert (result.status, result.passed, result.total) == (Status.PASSED, 1, 1), result.detail
    assert result.speedup and result.measurements[0].latency_us and not result.not_timed


@NEEDS_POCL
async def test_wrong_values_and_a_crash_are_results(evaluate: Evaluate) -> None:
    wrong = await evaluate(opencl(SCALE.replace("* factor;", "* factor * (i < 40 ? 1 : 2);")))
    assert (wrong.status, wrong.cause) == (Status.INCORRECT_NUMERICAL, "wrong_values"), wrong
    wild = await evaluate(opencl(SCALE.replace("* factor;", "* factor; y[1L << 40] = 1;")))
    assert (wild.status, wild.cause) == (Status.RUNTIME_ERROR, "signal_11"), wild


@NEEDS_POCL
async def test_a_build_reports_its_kernels_and_is_found_again(task: Task, tmp_path: Path) -> None:
    first = await TOOLKIT.compile(task, opencl(), tmp_path)
    assert first.ok and first.loads_as == "python" and "pocl" in first.toolchain.lower(), first
    kernel = first.kernels[0]
    assert (kernel.name, kernel.threads, kernel.shared_bytes, kernel.registers) == ("scale", 64, 256, None)
    assert "work items a group" in kernel.notes[0] and kernel.target
    again = await TOOLKIT.compile(task, opencl(description="prose"), tmp_path)
    assert again.cached and again.artifact == first.artifact and again.kernels == first.kernels
    other = await TOOLKIT.compile(task, opencl(parameters={"GROUP": 16}), tmp_path)
    assert not other.cached and other.kernels[0].shared_bytes == 64


@NEEDS_POCL
async def test_a_source_that_does_not_build_is_told_by_line(task: Task, tmp_path: Path) -> None:
    build = await TOOLKIT.compile(task, opencl(SCALE.replace("* factor;", "* faktor;")), tmp_path)
    assert not build.ok and errors(build)[0].startswith("kernel.cl:6 use of undeclared identifier 'faktor'"), build
    leak = await TOOLKIT.compile(task, opencl(f'#include "/etc/passwd"\n{SCALE}'), tmp_path)
    assert "root" not in leak.log and "file not found" in errors(leak)[0], leak


WRONG = {
    "no kernel 'scale': the program has other": opencl(SCALE.replace("void scale", "void other")),
    "8192 work items a group, at most 4096; takes 4 arguments, the launch passes 5: x, factor, y, rows": opencl(
        SCALE.replace(", long columns", "").replace("rows * columns", "rows"), "8192*rows", "8192"
    ),
    "does not divide global_size [51]: round up; `x` is `int*`, the launch passes x as `float*`;"
    " 4194304 bytes of local memory, the device has": opencl(
        SCALE.replace("[GROUP]", "[1 << 20]").replace("const float* x", "const int* x"), "rows*columns"
    ),
}


@NEEDS_POCL
async def test_a_launch_that_cannot_succeed_is_an_error_before_any_launch(task: Task, tmp_path: Path) -> None:
    for messages, solution in WRONG.items():
        build = await TOOLKIT.compile(task, solution, tmp_path)
        for message in messages.split("; "):
            assert not build.ok and any(message in error for error in errors(build)), (message, errors(build))


async def test_what_no_build_could_mend_is_said_at_once(task: Task, tmp_path: Path) -> None:
    refused = {
        "launch:": opencl(launch=[]),
        "must end in .cl": opencl(entry_point="kernel.c::scale", sources={"kernel.c": SCALE}),
        "'-I/etc' is refused": opencl(flags=["-I/etc"]),
        "is made by the toolkit": opencl(sources={"kernel.cl": SCALE, "launch.json": "{}"}),
    }
    for message, solution in refused.items():
        with pytest.raises(InvalidInput, match=message):
            await TOOLKIT.compile(task, solution, tmp_path)
