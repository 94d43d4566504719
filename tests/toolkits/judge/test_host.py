"""The machine around an evaluation is in every record, and what makes latencies doubtful is said."""

import os
import subprocess
import sys

import pytest

from tests.toolkits.conftest import LOOP, Evaluate, cpp
from toolkits.core.judge.host import Shares, Snapshot, busy_warning, shares_between
from toolkits.core.judge.procfs import TICK_S, UNKNOWN, Core, bracketed, cores, siblings, switches, text_of, used_s
from toolkits.core.judge.zygotes import default_cpu
from toolkits.core.schema import Status

KEYS = {
    "pinned_core",
    "threads",
    "sandbox",
    "load",
    "runnable",
    "frequency_mhz",
    "governor",
    "boost",
    "huge_pages",
    "context_switches",
    "page_faults",
    "steal",
    "others_on_core",
    "smt_sibling",
    "throttled",
}
STAT = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu0 1 2 3 40 5 6 7 8 0 0\ncpu1 10 0 0 0 0 0 0 1 0 0\nintr 1 2 3\n"
SPIN = "import os\nos.sched_setaffinity(0, {%d})\nprint('on', flush=True)\nwhile True: pass"


def snapshot(seconds: float, ticks: dict[int, Core], throttled: int | None = None, ours_s: float = 0.0) -> Snapshot:
    return Snapshot(at_s=seconds, cores=ticks, mhz="", throttled=throttled, ours_s={1: ours_s})


def shares(ticks: dict[int, Core], throttled: int | None = None, ours_s: float = 0.0) -> Shares:
    """Of a hundred ticks, on core 0 with its second thread 1."""
    before = snapshot(0.0, {cpu: Core(0, 0) for cpu in ticks}, None if throttled is None else 0)
    return shares_between(before, snapshot(100 * TICK_S, ticks, throttled, ours_s), 0, [1])


# --- files --------------------------------------------------------------------------------------------------------


def test_the_kernels_lines_of_cores_are_read_up_to_the_long_ones() -> None:
    assert cores(STAT, {0, 7}) == {0: Core(busy=19, stolen=8)}
    assert cores("", {0}) == {}


def test_the_threads_that_share_a_core_are_those_beside_it() -> None:
    assert siblings("3,67", 3) == [67]
    assert siblings("0-1", 1) == [0]
    assert siblings("5", 5) == siblings("", 5) == []


def test_what_a_process_used_is_read_while_it_is_alive() -> None:
    own = switches(os.getpid())
    assert own and own.minor > 0 and used_s(os.getpid()) is not None
    assert switches(0) is None and used_s(0) is None


def test_a_file_that_is_missing_says_so() -> None:
    assert text_of("/proc/there/is/no/such/file") == "" and bracketed("") == UNKNOWN
    assert bracketed("always [madvise] never") == "madvise"


# --- numbers ------------------------------------------------------------------------------------------------------


def test_the_evaluations_own_time_is_not_the_others() -> None:
    found = shares({0: Core(busy=90, stolen=1)}, ours_s=85 * TICK_S)
    assert found.others == pytest.approx(0.05) and found.stolen == 0.0
    assert found.warnings() == []


def test_what_matters_is_warned_of() -> None:
    found = shares({0: Core(busy=90, stolen=5), 1: Core(busy=60, stolen=0)}, throttled=3, ours_s=30 * TICK_S)
    told = "; ".join(found.warnings())
    for fact in (
        "throttled 3 times",
        "away for 5%",
        "other processes ran on core 0 for 60%",
        "thread of core 0 was busy",
    ):
        assert fact in told


def test_what_the_system_hides_is_said_and_not_warned_of() -> None:
    found = shares({})
    assert found.record() == {
        "steal": UNKNOWN,
        "others_on_core": UNKNOWN,
        "smt_sibling": f"1: busy {UNKNOWN}",
        "throttled": UNKNOWN,
    }
    assert found.warnings() == []


def test_a_load_above_the_number_of_cores_is_warned_of() -> None:
    assert busy_warning("2.50", 2) == ["load 2.50 on 2 cores: more wants to run than there is room for"]
    assert busy_warning("2.00", 2) == busy_warning("", 2) == []


# --- through the front door ---------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_every_record_has_the_machine_in_it(evaluate: Evaluate) -> None:
    timed = await evaluate(cpp(LOOP), "full")
    wrong = await evaluate(cpp("y[0] = 1;"), "full")
    died = await evaluate(cpp("*(volatile int*)0 = 0;"), "full")
    checked = await evaluate(cpp(LOOP), "check")
    for result in (timed, wrong, died, checked):
        assert result.host.keys() == KEYS
        assert all(result.host.values()) and result.host["pinned_core"] == str(default_cpu())
    assert "voluntary" in timed.host["context_switches"] and "minor" in timed.host["page_faults"]
    assert checked.host["context_switches"] == "not timed"
    assert died.status is Status.RUNTIME_ERROR


@pytest.mark.anyio
async def test_a_stranger_on_the_core_is_seen_and_the_evaluations_own_work_is_not(evaluate: Evaluate) -> None:
    long = cpp(f"for (int again = 0; again < 200; ++again) {{ {LOOP} }}")
    with subprocess.Popen([sys.executable, "-c", SPIN % default_cpu()], stdout=subprocess.PIPE) as stranger:
        assert stranger.stdout and stranger.stdout.readline()
        try:
            result = await evaluate(long, "full")
        finally:
            stranger.kill()
    assert result.status is Status.PASSED, result.detail
    assert any("other processes ran on core" in warning for warning in result.warnings), result.host
