"""Profiling with the real valgrind, and the parsers on recorded output."""

import shutil
import sys
from pathlib import Path

import pytest

from toolkits.core import profiling
from toolkits.core.errors import InvalidInput, ToolkitUnavailable
from toolkits.core.process import run
from toolkits.core.profilers import callgrind, perf
from toolkits.core.profilers.verdict import Counts, verdict
from toolkits.core.schema import Axis, Check, Distribution, Solution, Task, TensorSpec, Workload

pytestmark = pytest.mark.anyio

RECORDED = Path(__file__).parents[1] / "data/callgrind/colsum.out"

REFERENCE = """
import torch


def make_inputs(axes, distribution, generator):
    assert distribution == "normal"
    return {"x": torch.randn(axes["rows"], axes["columns"], generator=generator), "scale": 0.5}


def reference(inputs):
    return {"sums": (inputs["x"].double() * inputs["scale"]).sum(0)}


def refresh(inputs, draw):
    draw.normal(inputs["x"])
"""

COLUMN_SUMS = """#include "task.h"
extern "C" void colsum(const float* x, float scale, float* sums, int64_t rows) {
    for (int64_t c = 0; c < columns; ++c) {
        float total = 0;
        for (int64_t r = 0; r < rows; ++r)
            total += x[r * columns + c] * scale;
        sums[c] = total;
    }
}
"""
SUM_LINE = 6

PROGRAM = """#include <csignal>
#include <cstdlib>
int main(int count, char** words) {
    volatile double sum = 0;
    long n = std::atol(words[1]);
    for (long i = 0; i < n; ++i)
        sum = sum + i;
    if (count > 2) std::raise(SIGSEGV);
    return n % 7;
}
"""


def column_sums(folder: Path) -> Task:
    folder.mkdir()
    (folder / "reference.py").write_text(REFERENCE)
    return Task(
        name="colsum",
        title="Column sums",
        op_type="reduction",
        description="sums[c] = scale * sum over r of x[r, c]",
        axes={"rows": Axis(type="var"), "columns": Axis(type="const", value=256)},
        inputs={
            "x": TensorSpec(shape=["rows", "columns"], dtype="float32"),
            "scale": TensorSpec(shape=None, dtype="float32"),
        },
        outputs={"sums": TensorSpec(shape=["columns"], dtype="float32")},
        checks=[Check(output="sums", rule="allclose", tolerance=1e-4)],
        distributions={"normal": Distribution(description="standard normal")},
        correctness=[{"rows": 2}],
        baselines=["torch"],
        start="naive",
        workloads=[Workload(uuid="rows-512", axes={"rows": 512})],
        folder=folder,
        content_hash="0",
    )


def cpp(source: str) -> Solution:
    return Solution(task="colsum", toolkit="cpp", entry_point="k.cpp::colsum", sources={"k.cpp": source})


def python(source: str) -> Solution:
    return Solution(task="colsum", toolkit="python", entry_point="k.py::run", sources={"k.py": source})


@pytest.fixture
def only_callgrind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A PATH with valgrind alone, as on a machine without perf."""
    tools = tmp_path / "tools"
    tools.mkdir()
    # A link would not do: valgrind may be a script that looks for its parts beside itself.
    script = tools / "valgrind"
    script.write_text(f'#!/bin/sh\nPATH=/usr/bin:/bin exec {shutil.which("valgrind")} "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tools))


async def program(folder: Path) -> None:
    (folder / "count.cpp").write_text(PROGRAM)
    built = await run(
        ["/usr/bin/env", "PATH=/usr/local/bin:/usr/bin:/bin", "g++", "-O1", "-g", "count.cpp", "-o", "count"],
        cwd=folder,
        timeout_s=60,
    )
    assert built.returncode == 0, built.output


# --- recorded output -------------------------------------------------------------------------------------------


def test_a_recorded_callgrind_file_gives_its_counts_to_the_unit() -> None:
    profile = callgrind.parse(RECORDED.read_text())
    counts = callgrind.counts(profile)
    assert counts == Counts(536266, None, 133911, 870, 131159 + 39, 0, 132390 + 257, 396 + 1)
    for event in profile.events:
        assert sum(profile.cost(place, event) for place in profile.costs) == profile.totals[event], event


def test_a_recorded_callgrind_file_gives_self_cost_by_line() -> None:
    profile = callgrind.parse(RECORDED.read_text())
    source = "\n".join(f"line {number}" for number in range(1, 12))
    hot = callgrind.hot_lines(profile, {"kernel.cpp": source})
    assert [(h.file, h.line, h.instructions, h.source) for h in hot] == [
        ("kernel.cpp", 6, 394496, "line 6"),
        ("kernel.cpp", 7, 131072, "line 7"),
        ("libm.so.6", 0, 6536, "__expf_fma"),
    ]


@pytest.mark.parametrize("text", ["", "# callgrind format\nevents: Ir\n", RECORDED.read_text()[:3000]])
def test_a_truncated_callgrind_file_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="callgrind"):
        callgrind.parse(text)


def test_perf_counts_are_read_and_unsupported_ones_are_absent() -> None:
    text = (
        "# started on Mon\n\n1200000,,instructions,500000,100.00,1.20,insn per cycle\n"
        "1000000,,cycles:u,500000,100.00,,\n"
        "<not supported>,,LLC-load-misses,0,100.00,,\n500,,cpu_core/branch-misses/,5,100.00,,\n"
        "250,,cpu_atom/branch-misses/,5,100.00,,\n0.70,msec,task-clock,697601,100.00,0.088,CPUs utilized\n"
    )
    found = perf.parse(text)
    assert perf.counts(found) == Counts(instructions=1200000, cycles=1000000, branch_misses=750)
    assert perf.duration_us(found) == pytest.approx(700)
    assert not perf.missing(text) and perf.missing("<not supported>,,instructions,0,100.00,,\n")


@pytest.mark.parametrize(
    ("counts", "bottleneck", "words"),
    [
        (Counts(instructions=1000, l1_misses=300, ll_misses=0), "memory", "300 first-level"),
        (Counts(instructions=1000, l1_misses=50, ll_misses=50), "memory", "50 last-level"),
        (Counts(instructions=1000, branches=300, branch_misses=100), "branches", "100 of 300 mispredicted"),
        (Counts(instructions=1000, l1_misses=1), "compute", "1,000 instructions"),
        (Counts(), "unknown", "nothing is known"),
    ],
)
def test_the_largest_part_of_the_estimated_cycles_is_the_verdict(counts: Counts, bottleneck: str, words: str) -> None:
    found, line = verdict(counts)
    assert found == bottleneck and words in line


# --- real runs -------------------------------------------------------------------------------------------------


async def test_a_strided_kernel_is_memory_bound_at_the_line_that_strides(tmp_path: Path) -> None:
    task = column_sums(tmp_path / "colsum")
    report = await profiling.profile_solution(
        task, cpp(COLUMN_SUMS), task.workloads[0], tmp_path / "builds", tmp_path / "profile"
    )
    assert report.tool == "callgrind" and report.bottleneck == "memory", report.verdict
    assert f"k.cpp:{SUM_LINE}" in report.verdict
    summed = next(line for line in report.hot_lines if line.line == SUM_LINE)
    assert summed.file == "k.cpp" and summed.source.startswith("total +=")
    assert summed.instructions and summed.instructions >= 512 * 256
    # One call is counted, and each element is read once.
    assert report.data_reads and 512 * 256 <= report.data_reads < 1.1 * 512 * 256
    assert Path(report.raw_report).is_file() and not (tmp_path / "profile/arguments").exists()


async def test_a_kernel_that_crashes_under_the_profiler_is_told_with_its_place(tmp_path: Path) -> None:
    task = column_sums(tmp_path / "colsum")
    wild = cpp(COLUMN_SUMS.replace("sums[c] = total", "sums[c + (1ll << 40)] = total"))
    report = await profiling.profile_solution(task, wild, task.workloads[0], tmp_path / "builds", tmp_path / "profile")
    assert "signal 11 (SIGSEGV) at colsum (k.cpp:7)" in report.verdict
    assert report.instructions is None and report.hot_lines == []


async def test_a_solution_that_does_not_compile_is_told_before_anything_runs(tmp_path: Path) -> None:
    task = column_sums(tmp_path / "colsum")
    with pytest.raises(InvalidInput, match=r"k\.cpp:7: "):
        await profiling.profile_solution(
            task, cpp(COLUMN_SUMS.replace("= total", "= totl")), task.workloads[0], tmp_path / "b", tmp_path / "p"
        )


async def test_a_python_solution_is_sampled_by_line_and_operator(tmp_path: Path) -> None:
    task = column_sums(tmp_path / "colsum")
    source = "import torch\ndef run(x, scale, sums):\n    total = (x @ x.T @ x).sum(0)\n    sums.copy_(total)\n"
    report = await profiling.profile_solution(
        task, python(source), task.workloads[0], tmp_path / "builds", tmp_path / "profile"
    )
    assert report.tool == "sampling" and report.duration_us, report.verdict
    assert (report.hot_lines[0].file, report.hot_lines[0].line) == ("k.py", 3)
    assert report.hot_lines[0].instructions is None and report.instructions is None
    assert "aten::mm" in report.verdict


async def test_a_python_solution_that_raises_is_told(tmp_path: Path) -> None:
    task = column_sums(tmp_path / "colsum")
    source = "def run(x, scale, sums):\n    raise ValueError('no such thing')\n"
    report = await profiling.profile_solution(
        task, python(source), task.workloads[0], tmp_path / "builds", tmp_path / "profile"
    )
    assert "ValueError: no such thing" in report.verdict and report.duration_us is None


@pytest.mark.usefixtures("only_callgrind")
async def test_a_program_is_counted_by_the_lines_of_its_own_sources(tmp_path: Path) -> None:
    await program(tmp_path)
    report = await profiling.profile_command(["./count", "100000"], tmp_path, tmp_path / "profile")
    assert (report.hot_lines[0].file, report.hot_lines[0].line) == ("count.cpp", 7)
    assert report.hot_lines[0].source == "sum = sum + i;"
    assert f"exit status {100000 % 7}" in " ".join(report.notes)


@pytest.mark.usefixtures("only_callgrind")
async def test_a_program_that_takes_too_long_or_crashes_is_a_report(tmp_path: Path) -> None:
    await program(tmp_path)
    endless = await profiling.profile_command(["./count", str(10**15)], tmp_path, tmp_path / "long", limit_s=1)
    assert "stopped after 1 s" in endless.verdict
    crashed = await profiling.profile_command(["./count", "1", "crash"], tmp_path, tmp_path / "crash")
    assert "(SIGSEGV) at " in crashed.verdict and any("count.cpp:8" in note for note in crashed.notes)


@pytest.mark.usefixtures("only_callgrind")
async def test_a_python_command_is_refused_where_only_callgrind_could_run_it(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="Profile the solution itself"):
        await profiling.profile_command([sys.executable, "-c", "1"], tmp_path, tmp_path / "p")


async def test_without_any_profiler_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await program(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolkitUnavailable, match="apt install valgrind"):
        await profiling.profile_command(["./count", "1"], tmp_path, tmp_path / "p")


async def test_any_command_gives_counts_with_whatever_this_machine_has(tmp_path: Path) -> None:
    await program(tmp_path)
    report = await profiling.profile_command(["./count", "100000"], tmp_path, tmp_path / "profile")
    assert report.tool in {"perf", "callgrind"}
    assert report.instructions and report.instructions > 100000


async def test_what_cannot_be_profiled_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no program '\./absent'"):
        await profiling.profile_command(["./absent"], tmp_path, tmp_path / "p")
    with pytest.raises(InvalidInput, match="give a command line"):
        await profiling.profile_command([], tmp_path, tmp_path / "p")


def test_every_profiler_says_whether_it_works_here() -> None:
    found = profiling.profilers()
    assert found["callgrind"] == "" and found["sampling"] == "" and "perf" in found
