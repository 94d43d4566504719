"""Nsight Compute's pages of several versions and locales; the figures are computed by hand from the fixtures."""

from pathlib import Path

import pytest

from tests.toolkits.profilers.reports import DATA, kernel, read, read_as
from toolkits.core.errors import InvalidInput
from toolkits.core.profilers import ncu_rep
from toolkits.core.profilers.quantities import based, decimal_comma, number

NCU = DATA / "ncu"


def test_a_details_page_behind_log_lines_gives_every_kernel_with_most_time_first() -> None:
    report = read(NCU / "details.csv")
    assert (report.tool, report.architecture, report.launches) == ("ncu", "sm_90", 3)
    assert [(one.name, one.launches) for one in report.kernels] == [
        ("stride_copy(float *, int)", 2),
        ("dense_mul(float *, int)", 1),
    ]
    assert report.duration_us == pytest.approx(2020)
    copy = report.kernels[0]
    assert (copy.duration_us, copy.total_us) == (pytest.approx(1000), pytest.approx(2000))
    assert copy.share == pytest.approx(2000 / 2020)
    assert copy.memory_share == pytest.approx(0.74)  # (81.5 % of 1250 us + 61.5 % of 750 us) / 2000 us
    assert copy.dram_gb_s == pytest.approx(2750)
    assert (copy.grid, copy.block) == ((2048, 1, 1), (128, 2, 1))
    assert (copy.registers, copy.shared_bytes) == (40, 16380 + 512)
    assert (copy.occupancy, copy.occupancy_possible) == (pytest.approx(0.55), pytest.approx(0.625))
    assert copy.occupancy_limits == ["shared memory"]
    assert copy.stalls[0].share == pytest.approx(0.75) and "L1TEX" in copy.stalls[0].reason


def test_what_was_not_measured_is_none_and_never_zero() -> None:
    copy, small = read(NCU / "details.csv").kernels
    assert copy.l2_hit_share is None  # n/a in the page
    assert (small.registers, small.occupancy, small.dram_gb_s, small.tensor_share) == (None, None, None, None)
    assert small.flops is None and small.roofline is None and small.local_requests is None


def test_each_kernel_has_a_verdict_with_its_evidence_and_symptoms() -> None:
    copy, small = read(NCU / "details.csv").kernels
    # The second launch measured no device memory, so that share is the first one's.
    assert copy.bottleneck == "memory" and "device memory at 82% of peak (2750 GB/s)" in copy.verdict
    assert copy.symptoms == ["gpu_memory", "uncoalesced"] and "not coalesced" in copy.verdict
    assert copy.advice[0].startswith("UncoalescedGlobalAccess") and "45 %" in copy.advice[0]
    assert small.bottleneck == "launch" and "16 blocks of 256 threads fill 0.12" in small.verdict


def test_a_launch_that_is_missing_in_the_numbering_is_told() -> None:
    assert any("1 launches" in note and "missing" in note for note in read(NCU / "details.csv").notes)


def test_a_page_of_2019_has_other_labels_units_and_columns() -> None:
    [saxpy] = read(NCU / "details_2019.csv").kernels
    assert (saxpy.duration_us, saxpy.memory_share) == (pytest.approx(96.32), pytest.approx(0.71))
    assert (saxpy.compute_share, saxpy.dram_gb_s, saxpy.registers) == (pytest.approx(0.095), pytest.approx(620), 16)
    assert saxpy.grid is None and saxpy.bottleneck == "memory"


def test_decimal_commas_and_grouping_points_are_read_as_what_they_are() -> None:
    report = read(NCU / "details_comma.csv")
    [transpose] = report.kernels
    assert (transpose.duration_us, transpose.memory_share) == (pytest.approx(1048.576), pytest.approx(0.7425))
    assert transpose.dram_gb_s == pytest.approx(1154.0000000005) and report.architecture == "sm_80"


def test_a_summary_page_counts_invocations_and_takes_the_average() -> None:
    [reduce] = read(NCU / "summary.csv").kernels
    assert (reduce.launches, reduce.duration_us, reduce.total_us) == (12, pytest.approx(20), pytest.approx(240))
    assert reduce.memory_share == pytest.approx(0.65)


def test_a_raw_page_applies_its_row_of_units() -> None:
    report = read(NCU / "raw.csv")
    gemm = kernel(report, "gemm_tensor")
    assert report.device == "NVIDIA H100"
    assert (gemm.duration_us, gemm.dram_bytes) == (pytest.approx(100), pytest.approx(50e6))
    assert (gemm.tensor_share, gemm.pipes) == (pytest.approx(0.82), {"alu": pytest.approx(0.20)})
    assert (gemm.registers, gemm.shared_bytes, gemm.local_requests) == (168, 98300, 0)
    assert [(stall.share, stall.reason[:8]) for stall in gemm.stalls] == [
        (pytest.approx(0.75), "a global"),
        (pytest.approx(0.125), "the othe"),
    ]
    assert gemm.bottleneck == "compute" and "tensor pipe at 82%" in gemm.verdict
    assert gemm.roofline is None  # its operations are not in the count


def test_the_roofline_has_both_axes_and_the_nearer_roof() -> None:
    axpy = kernel(read(NCU / "raw.csv"), "axpy_simple")
    roof = axpy.roofline
    assert roof and axpy.flops == pytest.approx(2150 * 1.5e9 * 50e-6)
    assert roof.intensity == pytest.approx(1.6125) and roof.gflops == pytest.approx(3225)
    assert roof.roof_gflops == pytest.approx(1.6125 * 3072) and roof.share == pytest.approx(3225 / 4953.6)
    assert (roof.bound, roof.precision) == ("memory", "fp32")
    assert {"spills", "divergence"} <= set(axpy.symptoms)


@pytest.mark.parametrize(
    ("text", "comma", "value"),
    [
        ("4,963,609,951.19", False, 4963609951.19),
        ("4.963.609.951,19", True, 4963609951.19),
        ("1\u202f024,5", True, 1024.5),
        ("12'345.5", False, 12345.5),
        ("1e-05", False, 1e-5),
        ("n/a", False, None),
        ("1,2,3", False, None),
        ("0,123", False, None),
    ],
)
def test_numbers_of_every_locale(text: str, comma: bool, value: float | None) -> None:
    assert number(text, comma) == value


def test_the_locale_is_told_by_all_numbers_together() -> None:
    assert decimal_comma(["1,024", "61.84"]) is False
    assert decimal_comma(["1.024", "61,84"]) is True
    assert decimal_comma(["1,024", "2,048"]) is False
    assert decimal_comma(["61,84", "61.84"]) is None


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (50, "%", (0.5, "share")),
        (2, "Gbyte/second", (2e9, "byte/second")),
        (2, "Tbyte/s", (2e12, "byte/second")),
        (3, "usecond", (3e-6, "second")),
        (3, "ms", (3e-3, "second")),
        (1.5, "cycle/nsecond", (1.5e9, "hz")),
        (5, "Kbyte/block", (5000, "byte/block")),
        (7, "register/thread", (7, "register/thread")),
        (7, "furlong", (7, "furlong")),
    ],
)
def test_units_of_every_version_become_base_units(value: float, unit: str, expected: tuple[float, str]) -> None:
    found, name = based(value, unit)
    assert (found, name) == (pytest.approx(expected[0]), expected[1])


# --- what cannot be read ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "remedy"),
    [("no_permission.txt", "NVreg_RestrictProfilingToAdminUsers=0"), ("no_kernels.txt", "ends with a slash")],
)
def test_a_log_without_a_table_says_why_and_what_to_do(name: str, remedy: str) -> None:
    with pytest.raises(InvalidInput, match=remedy):
        read(NCU / name)


DETAILS = (NCU / "details.csv").read_text()
RAW = (NCU / "raw.csv").read_text()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (DETAILS.replace('"Metric Value"', '"Wert"'), "no version known"),
        (DETAILS.replace('"Kernel Name"', '"Kernel"'), "renamed columns"),
        (DETAILS.replace('"1,250.00"', '"1,25,0.00"'), "no number"),
        (DETAILS.replace('"1,250.00"', '"1.250,00"'), "LC_ALL=C"),
        (DETAILS.replace('"1,250.00"', "1,250,00"), "have more fields.*LC_ALL=C"),
        (DETAILS.split('"0","4242"')[0], "no kernel was profiled"),
        ("".join(line for line in RAW.splitlines(True) if not line.startswith('""')), "no row of units"),
        (RAW.replace("__", "_"), "no version known"),
        (b"\x89PNG\0\0\0\x0d", "binary file"),
        ("hello, this is no report\n", "of no kind that is read here"),
        ('{"traceEvents": []}', "JSON of no kind"),
        ("", "is empty"),
        ("\n \n", "is empty"),
    ],
)
def test_a_page_that_cannot_be_right_is_one_clear_error(tmp_path: Path, content: str | bytes, complaint: str) -> None:
    with pytest.raises(InvalidInput, match=complaint) as refused:
        read_as(tmp_path, "x.csv", content)
    assert "\n" not in str(refused.value) and "x.csv" in str(refused.value)


@pytest.mark.parametrize("name", ["details.csv", "details_2019.csv", "details_comma.csv", "summary.csv", "raw.csv"])
@pytest.mark.parametrize("tenths", range(1, 10))
def test_a_page_that_was_cut_is_refused(tmp_path: Path, name: str, tenths: int) -> None:
    content = (NCU / name).read_bytes()
    cut = content[: len(content) * tenths // 10].rstrip(b"\n")
    with pytest.raises(InvalidInput, match=r"cut|no kind|no kernel"):
        read_as(tmp_path, name, cut)


@pytest.mark.parametrize("content", [DETAILS.encode("utf-16"), b"\xef\xbb\xbf" + DETAILS.encode()])
def test_a_page_redirected_in_another_encoding_is_read(tmp_path: Path, content: bytes) -> None:
    assert read_as(tmp_path, "x.csv", content).duration_us == pytest.approx(2020)


def test_windows_line_ends_and_words_of_the_program_after_the_table_change_nothing(tmp_path: Path) -> None:
    told = DETAILS.replace("\n", "\r\n") + "all sums are right\n==PROF== Disconnected\n"
    assert read_as(tmp_path, "x.txt", told).duration_us == pytest.approx(2020)


def test_a_dropped_kernel_that_the_tool_names_is_in_the_notes(tmp_path: Path) -> None:
    log = '==ERROR== Failed to profile "lost_kernel" in process 4242\n'
    assert any("lost_kernel" in note for note in read_as(tmp_path, "x.csv", log + DETAILS).notes)


def test_a_ncu_rep_without_its_reader_says_what_to_install() -> None:
    assert "pip install kernel-lab[ncu]" in ncu_rep.MISSING and "--page raw" in ncu_rep.MISSING
