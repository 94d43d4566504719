"""Planted bugs are found by the real sanitizers, in the box, and named by kind and line; honest code has none."""

from pathlib import Path

import pytest

from tests.toolkits.conftest import CPP, LOOP, cpp
from toolkits.core import sanitize, sanitizer_reports
from toolkits.core.errors import ToolkitUnavailable
from toolkits.core.schema import Launch, Solution, Task

pytestmark = pytest.mark.anyio

NEEDS_OPENCL = pytest.mark.skipif(bool(sanitize.missing("opencl")), reason=sanitize.missing("opencl") or "it is there")
"""oclgrind comes with apt; .ci/run installs it."""
OPENCL = """__kernel void scale(__global const float* x, float factor, __global float* y, long rows, long columns) {
  __local float tile[64];
  const long i = get_global_id(0);
  const int l = get_local_id(0);
  tile[l] = i < rows * columns ? x[i] : 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (i < rows * columns) y[i] = tile[l] * factor;
}
"""


MEMORY = """int k = 2147483647 - 2;
  y[0] = k + static_cast<int>(rows);  // signed_overflow
  static float* freed; freed = new float[8]; freed[1] = factor; delete[] freed;
  y[1] = freed[1];  // use_after_free read
  for (int64_t i = 0; i <= rows * columns; ++i)
    y[i] = x[i] * factor;  // out_of_bounds read
  float* p = rows < 0 ? y : nullptr;
  *p = 1;  // null_pointer write"""
RACES = """float s = 0;
  std::thread t([&] { s += x[0]; });
  s += x[1];  // data_race
  t.join();
  y[0] = s;
#pragma omp parallel for
  for (int64_t i = 0; i < 9; ++i)
    y[1] += x[i];  // data_race"""
HONEST = f"""float s = 0;
#pragma omp parallel for reduction(+ : s)
  for (int64_t i = 0; i < rows * columns; ++i) s += x[i];
#pragma omp parallel
  {{
#pragma omp for schedule(dynamic)
    for (int64_t i = 0; i < rows * columns; ++i) y[i] = s;
#pragma omp barrier
#pragma omp critical
    y[0] += 1;
  }}
  std::thread t([&] {{ {LOOP} }});
  t.join();"""


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all: the driver is the same."""
    return tmp_path_factory.mktemp("builds")


def _with_threads(body: str) -> Solution:
    return cpp(body, sources={"main.cpp": "#include <thread>\n" + CPP.replace("BODY", body)})


def _planted(solution: Solution) -> set[tuple[str, int]]:
    """Kind and line, as the comments of the source say."""
    lines = enumerate(solution.sources["main.cpp"].splitlines(), start=1)
    return {(line.split("// ")[1].split()[0], number) for number, line in lines if "// " in line}


async def test_memory_errors_and_undefined_behaviour_are_named_by_kind_and_line(task: Task, builds: Path) -> None:
    solution = _with_threads(MEMORY)
    seen = await sanitize.sanitized(task, solution, builds)
    assert {(one.kind, one.line) for one in seen.findings} >= _planted(solution), seen
    for one in seen.findings:
        assert (one.file, one.function) == ("main.cpp", "scale"), one
        assert one.detail and one.frames[0].startswith("scale") and one.round == "normal rows=3 columns=17", one
    by_kind = {one.kind: one for one in seen.findings}
    assert by_kind["use_after_free"].access == "read" and by_kind["use_after_free"].bytes == 4
    assert by_kind["null_pointer"].access == "write" and "integer overflow" in by_kind["signed_overflow"].detail


async def test_data_races_are_named_by_line_in_threads_and_in_openmp(task: Task, builds: Path) -> None:
    solution = _with_threads(RACES)
    seen = await sanitize.sanitized(task, solution, builds)
    assert {(one.kind, one.line or 0) for one in seen.findings} >= _planted(solution), seen
    assert all(one.thread and "main.cpp:" in one.detail for one in seen.findings), seen


async def test_honest_threads_and_openmp_have_no_finding(task: Task, builds: Path) -> None:
    seen = await sanitize.sanitized(task, _with_threads(HONEST), builds)
    assert (seen.findings, seen.ended, seen.tools, seen.rounds) == ([], "", ["asan and ubsan", "tsan"], 4)


async def test_a_program_that_ends_itself_under_the_sanitizer_is_no_clean_program(task: Task, builds: Path) -> None:
    seen = await sanitize.sanitized(task, cpp("__builtin_trap();"), builds)
    assert "round normal rows=3 columns=17" in seen.ended or seen.findings, seen


def _opencl(text: str) -> Solution:
    launch = Launch(kernel="scale", global_size=["(rows*columns+63)//64*64"], local_size=["64"])
    fields = {"task": "scale", "toolkit": "opencl", "entry_point": "kernel.cl::scale", "launch": [launch]}
    return Solution.model_validate(fields | {"sources": {"kernel.cl": text}})


@NEEDS_OPENCL
async def test_opencl_is_searched_for_races_and_bounds(task: Task, builds: Path) -> None:
    clean = await sanitize.sanitized(task, _opencl(OPENCL), builds)
    assert (clean.findings, clean.ended, clean.tools) == ([], "", ["oclgrind"])
    wrong = OPENCL.replace("tile[l] * f", "tile[63 - l] * f").replace("barrier", "//")
    wrong = wrong.replace("  if (i < rows * columns) ", "  ")
    seen = await sanitize.sanitized(task, _opencl(wrong), builds)
    by_kind = {one.kind: one for one in reversed(seen.findings)}
    race, outside = by_kind["data_race"], by_kind["out_of_bounds"]
    assert race.file == "kernel.cl" and race.line in (5, 7) and "kernel.cl:" in race.detail, race
    assert (outside.access, outside.bytes, outside.line, outside.function) == ("write", 4, 7, "scale"), outside
    assert "Global(" in outside.thread and outside.address


async def test_a_toolkit_without_a_sanitizer_says_so(task: Task, builds: Path) -> None:
    with pytest.raises(ToolkitUnavailable, match="a sanitizer for python solutions: there is one for cpp"):
        await sanitize.sanitized(task, cpp(LOOP).model_copy(update={"toolkit": "python"}), builds)


def test_many_findings_of_one_place_are_one() -> None:
    line = "main.cpp:5:2: runtime error: signed integer overflow: 1 + 2 cannot be represented in type 'int'\n"
    other = "main.cpp:6:2: runtime error: store to null pointer of type 'float'\n"
    found = sanitizer_reports.native(line * 9 + other, {"main.cpp"})
    assert [(one.kind, one.line) for one in found] == [("signed_overflow", 5), ("null_pointer", 6)]
