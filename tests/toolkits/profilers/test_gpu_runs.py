"""Nsight Compute and rocprofv3 as programs: their command lines, and what becomes of a run, with stand-ins on PATH."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.toolkits.profilers.reports import DATA
from toolkits.core import gpu_profile, profiling

pytestmark = pytest.mark.anyio

Install = Callable[[str, str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a script on PATH, before what is there."""
    tools = tmp_path / "tools"
    tools.mkdir()
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")

    def made(name: str, body: str) -> None:
        (tools / name).write_text(f"#!/bin/sh\n{body}\n")
        (tools / name).chmod(0o755)

    return made


def ncu(recorded: str, output: str = "") -> str:
    """Records a file where --export says, and prints a recorded page on --import."""
    return f"""
case "$*" in *--import*) exec cat {DATA / "ncu" / recorded};; esac
while [ "$1" != --export ]; do shift; done
printf 'NVR' > "$2"
echo '{output}'
while [ "$1" != -- ]; do shift; done
shift; exec "$@"
"""


def test_the_command_lines_name_everything_that_decides_the_report(tmp_path: Path) -> None:
    report = tmp_path / "report.ncu-rep"
    assert gpu_profile.ncu_command(["./app", "--n", "4"], report) == [
        *("ncu", "--set", "full", "--target-processes", "all", "--launch-count", "64", "--force-overwrite"),
        *("--export", str(report), "--", "./app", "--n", "4"),
    ]
    assert gpu_profile.ncu_import_command(report) == [
        *("ncu", "--import", str(report), "--csv", "--page", "raw", "--print-units", "base")
    ]
    assert gpu_profile.rocprof_command(["./app"], tmp_path) == [
        *("rocprofv3", "--kernel-trace", "--output-format", "json", "--output-directory", str(tmp_path)),
        *("--output-file", "trace", "--", "./app"),
    ]


async def test_a_command_is_profiled_by_ncu_where_it_is_on_path(tmp_path: Path, install: Install) -> None:
    install("ncu", ncu("raw.csv"))
    install("my_app", f"touch {tmp_path}/ran")
    report = await profiling.profile_command(["my_app"], tmp_path, tmp_path / "out")
    assert (tmp_path / "ran").exists()
    assert (report.tool, report.target.split("/")[-1]) == ("ncu", "my_app")
    assert [one.name for one in report.kernels] == ["gemm_tensor", "axpy_simple"]
    assert report.raw_report.endswith("report.ncu-rep") and report.command[0] == "ncu"


async def test_a_report_as_long_as_the_limit_says_that_more_may_have_run(
    tmp_path: Path, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("ncu", ncu("raw.csv"))
    monkeypatch.setattr(gpu_profile, "LAUNCHES", 2)
    report = await profiling.profile_command(["true"], tmp_path, tmp_path / "out")
    assert report.notes[0].startswith("only the first 2 launches")


async def test_a_missing_permission_is_a_result_with_its_remedy(tmp_path: Path, install: Install) -> None:
    install("ncu", f"cat {DATA}/ncu/no_permission.txt; exit 1")
    report = await profiling.profile_command(["true"], tmp_path, tmp_path / "out")
    assert report.kernels == [] and "NVreg_RestrictProfilingToAdminUsers=0" in report.verdict


async def test_a_run_over_its_limit_is_stopped_with_all_it_started(tmp_path: Path, install: Install) -> None:
    install("ncu", f"sleep 1000 & echo $! > {tmp_path}/child; exec sleep 1000")
    report = await profiling.profile_command(["true"], tmp_path, tmp_path / "out", limit_s=0.5)
    assert "stopped after 0 s" in report.verdict and "collectives" in report.verdict
    child = int((tmp_path / "child").read_text())
    state = Path(f"/proc/{child}/stat")
    assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"


async def test_a_program_without_kernels_is_left_to_the_cpu_profilers(tmp_path: Path, install: Install) -> None:
    install("ncu", f"cat {DATA}/ncu/no_kernels.txt")
    report = await profiling.profile_command(["true"], tmp_path, tmp_path / "out")
    assert report.tool in ("callgrind", "perf") and report.instructions
    assert "ncu saw no GPU kernel" in report.notes


async def test_a_python_program_without_kernels_is_told_why(
    tmp_path: Path, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def none() -> bool:
        return False

    monkeypatch.setattr(profiling, "has_counters", none)
    install("ncu", f"cat {DATA}/ncu/no_kernels.txt")
    report = await profiling.profile_command([sys.executable, "-c", ""], tmp_path, tmp_path / "out")
    assert report.kernels == [] and "--nvtx-include" in report.verdict and "slash" in report.verdict


async def test_a_profiler_that_leaves_nothing_is_quoted(tmp_path: Path, install: Install) -> None:
    install("ncu", "echo '==ERROR== the application returned an error code (11)'; exit 1")
    report = await profiling.profile_command(["true"], tmp_path, tmp_path / "out")
    assert "exit status 1" in report.verdict and "error code (11)" in report.verdict


async def test_a_command_is_traced_by_rocprofv3_where_it_is_on_path(
    tmp_path: Path, install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = shutil.which

    def without_ncu(name: str) -> str | None:
        return None if name == "ncu" else here(name)

    monkeypatch.setattr(shutil, "which", without_ncu)
    install(
        "rocprofv3",
        'while [ "$1" != --output-directory ]; do shift; done; mkdir -p "$2/host"; '
        f'cp {DATA}/rocprof/results.json "$2/host/trace_results.json"',
    )
    report = await profiling.profile_command(["true"], tmp_path, tmp_path / "out")
    assert (report.tool, report.architecture, report.launches) == ("rocprofv3", "gfx942", 2)
    assert report.raw_report.endswith("trace_results.json")


EMPTY_JSON = (
    'while [ "$1" != --output-directory ]; do shift; done;'
    """ echo '{"rocprofiler-sdk-tool": []}' > "$2/trace_results.json" """
)


@pytest.mark.parametrize("said", ["exit 0", EMPTY_JSON])
async def test_rocprofv3_that_writes_nothing_is_no_success(
    tmp_path: Path, install: Install, monkeypatch: pytest.MonkeyPatch, said: str
) -> None:
    monkeypatch.setattr(gpu_profile, "profiler", lambda: "rocprofv3")
    install("rocprofv3", said)
    report = await gpu_profile.profile(["true"], tmp_path, tmp_path, dict(os.environ), 10)
    assert report and gpu_profile.saw_nothing(report) and "no kernel was traced" in report.verdict


def test_what_is_missing_to_profile_a_gpu_is_told() -> None:
    told = profiling.profilers()
    assert told["ncu"] == "" or "Nsight Compute" in told["ncu"]
    assert told["rocprofv3"] == "" or "ROCm" in told["rocprofv3"]
    assert told["ncu-report"] == "" or "pip install" in told["ncu-report"]
