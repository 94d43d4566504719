"""AMD's recordings of every generation; the figures are computed by hand from the fixtures."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.toolkits.profilers.reports import DATA, kernel, read, read_as
from toolkits.core.errors import InvalidInput

ROCPROF = DATA / "rocprof"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """rocprofv3's database with three dispatches."""
    path = tmp_path / "results.db"
    with closing(sqlite3.connect(path)) as made:
        made.executescript((ROCPROF / "rocpd.sql").read_text())
    return path


def test_a_trace_of_the_first_generation_counts_blocks_not_work_items() -> None:
    report = read(ROCPROF / "kernel_trace_62.csv")
    fold, scan = report.kernels
    assert (report.tool, report.launches, report.duration_us) == ("rocprofv3", 3, pytest.approx(60))
    assert (fold.launches, fold.duration_us, fold.total_us) == (2, pytest.approx(25), pytest.approx(50))
    assert (fold.grid, fold.block, fold.shared_bytes) == ((10, 5, 1), (64, 2, 1), 4096)
    assert scan.grid == (4, 1, 1)
    assert fold.registers is None and fold.memory_share is None
    assert (report.span_us, report.busy_share) == (pytest.approx(80), pytest.approx(0.75))
    assert fold.bottleneck == "unknown" and "record counters" in fold.verdict


def test_kernels_that_run_side_by_side_are_busy_once(tmp_path: Path) -> None:
    trace = (ROCPROF / "kernel_trace_62.csv").read_text()
    # The second kernel now runs within the first.
    beside = trace.replace("7000000000041000,7000000000051000", "7000000000011000,7000000000021000")
    report = read_as(tmp_path, "trace.csv", beside)
    assert report.duration_us == pytest.approx(60) and report.busy_share == pytest.approx(50 / 80)


def test_a_trace_of_rocm_7_has_registers_and_tells_what_was_dropped() -> None:
    report = read(ROCPROF / "kernel_trace_70.csv")
    [tile] = report.kernels
    assert (tile.registers, tile.accumulation_registers, tile.scalar_registers) == (96, 32, 48)
    assert (tile.scratch_bytes, tile.duration_us, tile.launches) == (16, pytest.approx(4), 3)
    assert report.busy_share == pytest.approx(0.08) and report.bottleneck == "host"
    assert report.symptoms == ["launch_gaps"] and "8% of the 0.1 ms" in report.verdict
    notes = " ".join(report.notes)
    assert "2 dispatches are missing: their ids run from 1 to 5" in notes
    assert "1 dispatches have no valid time stamps" in notes


def test_memory_bytes_are_given_where_their_formula_is_known() -> None:
    report = read(ROCPROF / "gfx942/counter_collection.csv")
    [stream] = report.kernels
    assert (report.device, report.architecture) == ("AMD Instinct MI300X", "gfx942")
    assert stream.dram_bytes == 2 * 1024 * 1024 and stream.dram_gb_s == pytest.approx(2097.152)
    assert stream.dram_share == pytest.approx(2097.152 / 5300)
    assert stream.counters["SQ_WAVES"] == 1024 and stream.launches == 1


def test_memory_bytes_of_gfx950_are_unknown_and_not_too_low() -> None:
    report = read(ROCPROF / "gfx950/counter_collection.csv")
    [stream] = report.kernels
    assert (stream.dram_bytes, stream.dram_gb_s, stream.dram_share) == (None, None, None)
    assert any("gfx950" in note and "too low" in note for note in report.notes)


def test_memory_bytes_of_an_unnamed_device_are_unknown(tmp_path: Path) -> None:
    content = (ROCPROF / "gfx942/counter_collection.csv").read_bytes()
    report = read_as(tmp_path, "alone/counter_collection.csv", content)
    assert report.kernels[0].dram_bytes is None and any("agent_info.csv" in note for note in report.notes)


def test_the_wide_table_of_rocprof_compute_gives_every_figure(tmp_path: Path) -> None:
    report = read_as(tmp_path, "MI300X_A1/pmc_perf.csv", (ROCPROF / "pmc_perf.csv").read_bytes())
    [axpy] = report.kernels
    assert (report.tool, report.architecture, axpy.name) == ("rocprof-compute", "gfx942", "axpy(float*, float*)")
    read_bytes = 128 * 1000 + 64 * (11000 - 1000 - 2000) + 32 * 2000
    written = 64 * 4000 + 32 * 1000
    assert axpy.dram_bytes == read_bytes + written and axpy.dram_gb_s == pytest.approx(496)
    assert axpy.l2_hit_share == pytest.approx(0.4)  # 30 + 10 hits of two channels, 60 misses
    assert axpy.flops == 64 * 2 * 4096
    assert axpy.roofline and axpy.roofline.gflops == pytest.approx(262.144)
    assert axpy.roofline.roof_gflops == pytest.approx(524288 / 992000 * 5300)
    assert [(stall.reason, stall.share) for stall in axpy.stalls] == [
        ("memory or another dependency", pytest.approx(0.6)),
        ("a turn to issue", pytest.approx(0.1)),
    ]
    assert axpy.active_lanes == pytest.approx(0.75) and "divergence" in axpy.symptoms
    assert (axpy.occupancy_possible, axpy.occupancy_limits) == (pytest.approx(0.5), ["registers"])
    assert axpy.tensor_share is None  # no MFMA counter was recorded
    assert report.span_us is None  # counting serialises: no gap is the program's


def test_sysinfo_beside_a_wide_table_names_the_device(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run/sysinfo.csv").write_text("workload_name,gpu_arch,gpu_model\nx,gfx950,MI355X\n")
    report = read_as(tmp_path, "run/pmc_perf.csv", (ROCPROF / "pmc_perf.csv").read_bytes())
    assert (report.device, report.architecture, report.kernels[0].dram_bytes) == ("MI355X", "gfx950", None)


def test_statistics_give_times_and_say_what_they_lack() -> None:
    report = read(ROCPROF / "kernel_stats.csv")
    fold, scan = report.kernels
    assert (fold.launches, fold.duration_us, fold.share) == (4, pytest.approx(20), pytest.approx(0.8))
    assert scan.total_us == pytest.approx(20) and "times only" in report.notes[0]


def test_pc_samples_name_the_hot_lines() -> None:
    report = read(ROCPROF / "pc_sampling_host_trap.csv")
    assert [(line.file, line.line, line.share, line.source) for line in report.hot_lines] == [
        ("/src/fold.hip", 17, 0.5, ""),
        ("/src/fold.hip", 21, 0.25, ""),
        ("???", 0, 0.25, "s_endpgm"),
    ]
    assert report.verdict.startswith("50% of 4 samples at /src/fold.hip:17")
    assert report.notes == ["75% of the lanes were on in the mean sample"] and report.kernels == []


def test_json_that_traced_and_counted_has_each_dispatch_once() -> None:
    report = read(ROCPROF / "results.json")
    [fold] = report.kernels
    assert (report.device, report.architecture) == ("AMD Instinct MI300X", "gfx942")
    assert report.command == ["./demo", "--size", "4"]
    assert (fold.launches, fold.duration_us, fold.grid) == (2, pytest.approx(1.5), (2, 2, 1))
    assert fold.counters == {"SQ_WAVES": 16}
    assert (fold.occupancy_possible, fold.occupancy_limits) == (pytest.approx(0.25), ["registers"])


def test_a_database_is_read_through_its_views(database: Path) -> None:
    report = read(database)
    fold = kernel(report, "fold")
    assert (report.device, report.architecture, report.command) == ("AMD Instinct MI250X", "gfx90a", ["./demo"])
    assert (fold.launches, fold.total_us, fold.grid) == (2, pytest.approx(6), (4, 2, 1))
    assert fold.occupancy_possible == pytest.approx(0.5)
    assert (report.span_us, report.busy_share) == (pytest.approx(8), pytest.approx(0.875))


# --- what cannot be read ----------------------------------------------------------------------------------------

TRACE = (ROCPROF / "kernel_trace_70.csv").read_text()
JSON = (ROCPROF / "results.json").read_text()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (TRACE.splitlines()[0] + "\n", "header and no row.*--pmc"),
        (TRACE.replace("Start_Timestamp", "Begin").replace("End_Timestamp", "Ende"), "neither time stamps"),
        (TRACE.replace("1004000", "1.004,000"), "more fields.*LC_ALL=C"),
        (TRACE.replace("1004000", '"1.004,000"'), "column End_Timestamp.*LC_ALL=C"),
        (TRACE.replace(",16,96,32,48,256", ",256", 1), "fewer fields"),
        (TRACE.replace("1004000", "inf"), "column End_Timestamp holds 'inf'"),
        (JSON.replace('"value": 5.0', '"value": NaN'), "NaN"),
        (JSON.replace('"end_timestamp": 4900', '"end_timestamp": 1e999'), "lacks|damaged"),
        (JSON.replace("kernel_symbols", "symbols"), "lacks 'kernel_symbols'"),
        (JSON.replace('"kernel_id": 1, "dispatch_id": 2', '"kernel_id": 7, "dispatch_id": 2'), "lacks 7"),
        ('{"rocprofiler-sdk-tool": []}', "no kernel dispatch"),
        ('{"rocprofiler-sdk-tool": 5}', "lacks"),
    ],
)
def test_a_recording_that_cannot_be_right_is_one_clear_error(tmp_path: Path, content: str, complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint) as refused:
        read_as(tmp_path, "x.csv", content)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "name",
    [
        "kernel_trace_62.csv",
        "kernel_trace_70.csv",
        "gfx942/counter_collection.csv",
        "pmc_perf.csv",
        "kernel_stats.csv",
        "pc_sampling_host_trap.csv",
    ],
)
@pytest.mark.parametrize("tenths", range(1, 10))
def test_a_table_that_was_cut_is_refused(tmp_path: Path, name: str, tenths: int) -> None:
    content = (ROCPROF / name).read_bytes()
    with pytest.raises(InvalidInput, match=r"cut|no kind|fewer fields|no row"):
        read_as(tmp_path, "cut.csv", content[: len(content) * tenths // 10].rstrip(b"\n"))


@pytest.mark.parametrize("tenths", range(1, 10))
def test_json_that_was_cut_is_refused(tmp_path: Path, tenths: int) -> None:
    with pytest.raises(InvalidInput, match="cut or damaged"):
        read_as(tmp_path, "cut.json", JSON[: len(JSON) * tenths // 10])


@pytest.mark.parametrize("kept", [20, 99, 100, 5000, -1])
def test_a_database_that_was_cut_is_refused(tmp_path: Path, database: Path, kept: int) -> None:
    with pytest.raises(InvalidInput, match="cut or damaged"):
        read_as(tmp_path, "cut.db", database.read_bytes()[:kept])


@pytest.mark.parametrize(
    ("statement", "complaint"),
    [
        ("DROP VIEW kernels", "no output of rocprofv3"),
        ("DELETE FROM dispatch", "no kernel dispatch"),
        ("DROP VIEW kernels; CREATE VIEW kernels AS SELECT name AS title FROM dispatch", "lacks agent_abs_index"),
        ("DROP TABLE rocpd_info_agent", "no such table"),
    ],
)
def test_a_database_of_another_schema_is_refused(database: Path, statement: str, complaint: str) -> None:
    with closing(sqlite3.connect(database)) as changed:
        changed.executescript(statement)
    with pytest.raises(InvalidInput, match=complaint):
        read(database)
