"""What changed between two reports, of GPU profilers and of the lab's own CPU profilers."""

from pathlib import Path

import pytest

from tests.toolkits.profilers.reports import DATA, read, read_as
from toolkits.core.errors import InvalidInput
from toolkits.core.profilers import compare
from toolkits.core.schema import Change, KernelProfile, ProfileReport

DETAILS = (DATA / "ncu/details.csv").read_text()
CALLGRIND = (DATA / "callgrind/colsum.out").read_text()


def changed(before: ProfileReport, after: ProfileReport) -> dict[tuple[str, str], Change]:
    return {(change.kernel.split("(")[0], change.what): change for change in compare.changes(before, after)}


def test_a_report_against_itself_has_no_change() -> None:
    report = read(DATA / "ncu/details.csv")
    assert compare.changes(report, report) == [] and compare.notes(report, report) == []
    assert "(1x)" in compare.verdict(report, report) and "still limited by memory" in compare.verdict(report, report)


def test_kernels_are_paired_by_name_with_ratios(tmp_path: Path) -> None:
    before = read_as(tmp_path, "a.csv", DETAILS)
    faster = DETAILS.replace('"1,250.00"', '"500.00"').replace('"750.00"', '"500.00"').replace('"40"', '"80"')
    found = changed(before, read_as(tmp_path, "b.csv", faster))
    copy = found["stride_copy", "duration_us"]
    assert (copy.before, copy.after, copy.ratio) == (pytest.approx(1000), pytest.approx(500), pytest.approx(0.5))
    assert found["stride_copy", "registers"].ratio == 2
    assert found["", "duration_us"].ratio == pytest.approx(1020 / 2020)
    assert not any(kernel == "dense_mul" for kernel, _ in found)


def test_a_limit_that_moved_is_told(tmp_path: Path) -> None:
    before = read_as(tmp_path, "a.csv", DETAILS)
    after = read_as(tmp_path, "b.csv", DETAILS.replace('"81.50"', '"20.00"').replace('"12.25"', '"91.00"'))
    assert "limited by memory before and by compute now" in compare.verdict(before, after)
    moved = "stride_copy: limited by memory before and by compute now"
    assert any(moved in note for note in compare.notes(before, after))


def test_kernels_that_only_one_report_has_are_named(tmp_path: Path) -> None:
    before = read_as(tmp_path, "a.csv", DETAILS)
    after = read_as(tmp_path, "b.csv", DETAILS.replace("dense_mul(", "dense_mul_v2("))
    line = compare.verdict(before, after)
    assert "1 kernels only before: dense_mul" in line and "1 kernels only after: dense_mul_v2" in line


def test_a_figure_that_one_report_lacks_is_no_ratio() -> None:
    old = ProfileReport(tool="ncu", target="a", kernels=[KernelProfile(name="k", occupancy=0.5)])
    new = ProfileReport(tool="rocprofv3", target="b", kernels=[KernelProfile(name="k")])
    [change] = compare.changes(old, new)
    assert (change.before, change.after, change.ratio) == (0.5, None, None)
    assert compare.line(change) == "k: occupancy 50.0%, measured only before"
    assert compare.notes(old, new) == ["tools differ: ncu and rocprofv3"]


def test_two_callgrind_reports_compare_by_their_counts(tmp_path: Path) -> None:
    before = read_as(tmp_path, "callgrind.out.1", CALLGRIND)
    assert (before.tool, before.instructions, before.bottleneck) == ("callgrind", 536266, "memory")
    kept = read_as(tmp_path, "report.json", before.model_copy(update={"instructions": 268133}).model_dump_json())
    found = changed(before, kept)
    assert found["", "instructions"].ratio == pytest.approx(0.5)
    assert compare.verdict(before, kept).startswith("instructions 536,266 to 268,133 (0.5x); still limited by memory")
    assert compare.line(found["", "instructions"]) == "instructions 536,266 to 268,133 (0.5x)"


@pytest.mark.parametrize(
    ("old", "new"),
    [("\n3 2 0 1", "\n3 two 0 1"), ("+1 ", "+x "), ("totals: ", "totals: 1e9 "), ("events: Ir", "events:")],
)
def test_a_damaged_callgrind_file_is_one_error(tmp_path: Path, old: str, new: str) -> None:
    assert old in CALLGRIND
    with pytest.raises(InvalidInput, match=r"damaged|truncated"):
        read_as(tmp_path, "callgrind.out", CALLGRIND.replace(old, new, 1))


def test_perf_counters_of_a_file_are_a_report(tmp_path: Path) -> None:
    counted = "1200000,,instructions,5,100.00,,\n1000000,,cycles,5,100.00,,\n0.70,msec,task-clock,6,100.00,,\n"
    report = read_as(tmp_path, "perf.csv", f"# started on Mon\n\n{counted}")
    assert (report.tool, report.instructions, report.cycles) == ("perf", 1200000, 1000000)
    assert report.duration_us == pytest.approx(700)
