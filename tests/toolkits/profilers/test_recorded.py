"""Recordings of other people's machines, each digested to figures that were checked by hand against the file.

They are not part of this repository; where they are absent there is nothing to test.
"""

import asyncio
import csv
import gzip
from pathlib import Path

import pytest

from tests.toolkits.profilers.reports import SHARED, kernel, read, read_as
from toolkits.core import gpu_profile
from toolkits.core.errors import InvalidInput
from toolkits.core.profilers import ncu_rep

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="the recordings are not part of the repository")

V100 = SHARED / "ncu/NCAR_MW_Baseline.ncu-rep"
T4 = SHARED / "ncu/nsightful_copy_blocked.details.csv"
TRACE = SHARED / "rocprof/sdk2024_kernel_trace.csv"
COUNTERS = SHARED / "rocprof/sdk2024_counter_collection.csv"
MI350X = SHARED / "rocprof/TraceLens_908_results.json.gz"
MI300X = SHARED / "rocprof/rocprofcompute_device_filter_MI300X_A1.pmc_perf.csv"
ROCPD = SHARED / "rocprof/synthetic_rocpd_908.db"

with_reader = pytest.mark.skipif(not ncu_rep.installed(), reason="needs the extra [ncu]")


@with_reader
def test_a_report_of_a_v100_digests_to_its_figures(tmp_path: Path) -> None:
    report = asyncio.run(gpu_profile.read(V100, tmp_path))
    assert (report.tool, report.device, report.architecture) == ("ncu", "Tesla V100-SXM2-32GB", "sm_70")
    assert [(one.name, round(one.duration_us or 0, 3)) for one in report.kernels] == [
        ("compute_tendencies_x_279_gpu", 6190.944),
        ("semi_discrete_step_232_gpu", 5618.848),
        ("compute_tendencies_x_309_gpu", 3625.056),
        ("set_halo_values_x_419_gpu", 13.12),
        ("set_halo_values_x_396_gpu", 11.36),
    ]
    step = kernel(report, "semi_discrete_step")
    assert step.dram_bytes == 2456895680 + 1267523360
    assert step.dram_gb_s == pytest.approx(662.84, abs=0.01) and step.dram_share == pytest.approx(0.7443, abs=1e-4)
    assert step.compute_share == pytest.approx(0.2333, abs=1e-4) and step.tensor_share == 0
    assert (step.registers, step.grid, step.block) == (37, (65535, 1, 1), (128, 1, 1))
    assert (step.occupancy, step.occupancy_possible) == (pytest.approx(0.7332, abs=1e-4), 0.75)
    assert step.occupancy_limits == ["registers"] and step.local_requests == 0
    # Its own rule says that this stall is 84.8 % of the time between two instructions.
    assert step.stalls[0].share == pytest.approx(0.848, abs=2e-3) and "long scoreboard" in step.stalls[0].reason
    assert step.bottleneck == "memory" and step.roofline and step.roofline.bound == "memory"


@with_reader
def test_the_roofline_agrees_with_what_the_report_says_itself(tmp_path: Path) -> None:
    kernels = asyncio.run(gpu_profile.read(V100, tmp_path))
    tendencies = kernel(kernels, "compute_tendencies_x_309")
    roof = tendencies.roofline
    assert roof and roof.precision == "fp64"
    # SOLFPRoofline: "16% of its fp64 peak performance"; the peak is 5120 a cycle at 1.295 GHz.
    assert roof.gflops / (5120 * 1.295) == pytest.approx(0.16, abs=0.005)
    assert kernel(kernels, "compute_tendencies_x_279").bottleneck == "compute"
    halo = kernel(kernels, "set_halo_values_x_396")
    assert halo.bottleneck == "launch" and halo.waves == pytest.approx(0.2667, abs=1e-4)
    assert "uncoalesced" in halo.symptoms


@with_reader
@pytest.mark.parametrize("hundredths", [0.01, 1, 10, 33, 50, 66, 90, 99])
def test_a_cut_ncu_rep_is_one_error(tmp_path: Path, hundredths: float) -> None:
    cut = tmp_path / "cut.ncu-rep"
    cut.write_bytes(V100.read_bytes()[: int(1506769 * hundredths / 100)])
    with pytest.raises(InvalidInput, match=r"cut\.ncu-rep: .*(cut|damaged)") as refused:
        asyncio.run(gpu_profile.read(cut, tmp_path))
    assert "\n" not in str(refused.value)


@with_reader
def test_a_damaged_ncu_rep_does_not_take_the_lab_with_it(tmp_path: Path) -> None:
    damaged = bytearray(V100.read_bytes())
    damaged[5000:900_000:997] = bytes(len(range(5000, 900_000, 997)))
    (tmp_path / "bad.ncu-rep").write_bytes(damaged)
    with pytest.raises(InvalidInput, match="damaged"):
        asyncio.run(gpu_profile.read(tmp_path / "bad.ncu-rep", tmp_path))


def test_a_ncu_rep_without_its_reader_is_one_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ncu_rep, "PACKAGE", "ncu-report-that-is-not-installed")
    with pytest.raises(InvalidInput, match=r"pip install kernel-lab\[ncu\]"):
        asyncio.run(gpu_profile.read(V100, tmp_path))


def test_a_details_page_of_a_t4_digests_to_its_figures() -> None:
    report = read(T4)
    [copy] = report.kernels
    assert report.architecture == "sm_75" and copy.name.startswith("copy_blocked")
    assert copy.duration_us == pytest.approx(21058.944)
    assert (copy.memory_share, copy.dram_share) == (pytest.approx(0.6184), pytest.approx(0.6184))
    assert copy.dram_gb_s == pytest.approx(196.45617785963)
    assert (copy.l1_hit_share, copy.l2_hit_share) == (pytest.approx(0.0046), pytest.approx(0.0458))
    assert (copy.compute_share, copy.issue_share) == (pytest.approx(0.013), pytest.approx(0.0082))
    assert (copy.occupancy, copy.occupancy_possible, copy.occupancy_limits) == (pytest.approx(0.9626), 1.0, [])
    assert (copy.registers, copy.shared_bytes, copy.waves) == (32, 0, pytest.approx(6.4))
    assert (copy.grid, copy.block) == ((1024, 1, 1), (256, 1, 1))
    assert [stall.share for stall in copy.stalls] == [pytest.approx(0.527), pytest.approx(0.469)]
    assert copy.active_lanes == pytest.approx(31.95 / 32) and copy.uniform_branches == 1.0
    assert copy.bottleneck == "memory" and copy.symptoms == ["gpu_memory", "uncoalesced"]
    assert copy.flops is None and copy.tensor_share is None and copy.local_requests is None


def test_a_details_page_in_a_german_locale_gives_the_same_report(tmp_path: Path) -> None:
    rows = list(csv.reader(T4.read_text().splitlines()))
    swap = str.maketrans(".,", ",.")
    with (tmp_path / T4.name).open("w", newline="") as file:
        writer = csv.writer(file, delimiter=";", quoting=csv.QUOTE_ALL, lineterminator="\n")
        writer.writerow(rows[0])
        writer.writerows(
            [
                *row[:10],
                row[10].translate(swap),
                *row[11:14],
                row[14].translate(swap),
                *row[15:-1],
                row[-1].translate(swap),
            ]
            for row in rows[1:]
        )
    german, original = read(tmp_path / T4.name), read(T4)
    assert german.model_copy(update={"raw_report": ""}) == original.model_copy(update={"raw_report": ""})


def test_a_trace_of_rocm_6_digests_to_its_figures() -> None:
    report = read(TRACE)
    assert [(one.launches, round(one.total_us or 0, 3)) for one in report.kernels] == [
        (4, 413.506),  # 48.744 + 100.895 + 130.526 + 133.341
        (2, 242.384),  # 103.265 + 139.119
        (1, 139.563),
    ]
    assert report.span_us == pytest.approx((8819330200369359 - 8819330200067564) / 1e3)
    assert report.kernels[0].grid == (16, 1024, 1)
    assert "6 dispatches are missing: their ids run from 1 to 13" in report.notes[0]


def test_counters_of_rocm_6_are_put_together_a_dispatch() -> None:
    report = read(COUNTERS)
    assert report.launches == 7 and [one.launches for one in report.kernels] == [4, 2, 1]
    for one in report.kernels:
        assert one.counters == {"SQ_WAVES": 16384} and (one.registers, one.scalar_registers) == (8, 16)
        assert one.duration_us is None and one.dram_bytes is None


def test_a_training_run_on_mi350x_digests_to_its_figures() -> None:
    report = read(MI350X)
    assert (report.device, report.architecture) == ("AMD Instinct MI350X", "gfx950")
    assert (report.launches, len(report.kernels)) == (43915, 80)
    assert report.duration_us == pytest.approx(4441741.378)
    collective = report.kernels[0]
    assert (collective.name.split("(")[0], collective.launches) == ("ncclDevKernel_Generic_1", 1310)
    assert collective.total_us == pytest.approx(4158756.678)
    assert (collective.registers, collective.scratch_bytes, collective.shared_bytes) == (92, 520, 37664)
    assert report.bottleneck == "host" and report.busy_share == pytest.approx(0.27993, abs=1e-4)
    assert report.notes == []


def test_counters_on_mi300x_digest_to_the_bytes_that_a_copy_must_move() -> None:
    report = read(MI300X)
    [copy] = report.kernels
    assert report.tool == "rocprof-compute" and copy.name == "vecCopy(double*, double*, double*, int, int)"
    assert (copy.launches, copy.total_us) == (3, pytest.approx(16.119 + 13.560 + 13.480))
    assert (copy.grid, copy.block) == ((4096, 1, 1), (256, 1, 1))
    # 1,048,576 doubles read and as many written.
    assert copy.dram_bytes == pytest.approx(2 * 8 * 1048576, rel=0.002)
    assert copy.counters["SQ_WAVES"] == 1048576 / 64 and copy.active_lanes == pytest.approx(1.0)
    assert copy.flops == 0 and copy.tensor_share == 0 and copy.roofline is None


def test_the_synthetic_database_digests_to_the_dispatches_it_was_filled_with() -> None:
    report = read(ROCPD)
    assert (report.launches, report.duration_us) == (400, pytest.approx(1271.81))
    assert [(one.name[:20], one.launches) for one in report.kernels] == [
        ("__amd_rocclr_copyBuf", 287),
        ("__amd_rocclr_fillBuf", 112),
        ("void at::native::(an", 1),
    ]
    assert report.architecture == "gfx950" and report.span_us == pytest.approx(2088986.238)


@pytest.mark.parametrize("path", [T4, TRACE, COUNTERS, MI350X, MI300X, ROCPD], ids=lambda path: path.name)
@pytest.mark.parametrize("part", [0.0, 0.001, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 0.999])
def test_every_recording_cut_anywhere_is_one_error(tmp_path: Path, path: Path, part: float) -> None:
    content = path.read_bytes()
    with pytest.raises(InvalidInput) as refused:
        read_as(tmp_path, path.name, content[: int(len(content) * part)].rstrip(b"\n"))
    assert "\n" not in str(refused.value) and path.name in str(refused.value)


def test_a_cut_inside_the_archive_is_one_error(tmp_path: Path) -> None:
    text = gzip.decompress(MI350X.read_bytes())
    with pytest.raises(InvalidInput, match="cut or damaged"):
        read_as(tmp_path, "x.json.gz", gzip.compress(text[: len(text) // 2], 1))


@pytest.mark.parametrize("path", [T4, TRACE, COUNTERS, MI300X], ids=lambda path: path.name)
def test_every_table_with_other_columns_is_one_error(tmp_path: Path, path: Path) -> None:
    header, _, rest = path.read_text().partition("\n")
    with pytest.raises(InvalidInput, match="renamed columns"):
        read_as(tmp_path, path.name, f"{header.replace('Name', 'Nom')}\n{rest}")
