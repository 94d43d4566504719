"""The physical floor: what no kernel can do is no latency, and a device is measured once and then known."""

import math
from pathlib import Path
from typing import Any

import pytest

from mcp_server.folders import read_task
from tests.cheats.corpus import SHIPPED, find_cases, judged
from tests.toolkits.conftest import LOOP, Evaluate, cpp
from toolkits.core import device
from toolkits.core.judge.calibration import USUAL_CACHES, Calibration, caches, highest
from toolkits.core.judge.client import Judge
from toolkits.core.judge.floor import MARGIN, Floor, floor_of, move_s
from toolkits.core.judge.timed import Timed
from toolkits.core.judge.workers import Spent
from toolkits.core.judge.zygotes import default_cpu
from toolkits.core.schema import MemoryLevel, Speeds, Status, Task, Work, Workload
from toolkits.core.signature import size_of
from toolkits.core.speeds import machine, store, stored

SPEEDS = Speeds(
    machine="a machine",
    levels=[
        MemoryLevel(name="L1", bytes=1000, gb_s=100.0),
        MemoryLevel(name="L2", bytes=9000, gb_s=10.0),
        MemoryLevel(name="memory", bytes=None, gb_s=1.0),
    ],
    gflops=100.0,
    fastest_gflops=400.0,
)
HONEST_WORK = Work(bytes="8*rows*columns", flops="rows*columns")


@pytest.fixture
def work() -> Work:
    return HONEST_WORK


@pytest.fixture
def task(task: Task, work: Work) -> Task:
    """The scale task with its work stated."""
    return task.model_copy(update={"work": work, "content_hash": f"scale {work.bytes} {work.flops}"})


def spent(us: float) -> Spent:
    return Spent(cpu_ns=int(us * 1e3), outer_ns=int(us * 1e3) + 20_000, wall_ns=int(us * 1e3) + 30_000)


def timed(floor: Floor | None, candidate_us: float, baseline_us: float) -> Timed:
    result = Timed(Workload(uuid="w", axes={}), floor)
    for _ in range(8):
        result.add(spent(candidate_us), spent(baseline_us), spent(baseline_us))
    return result


# --- numbers ------------------------------------------------------------------------------------------------------


def test_bytes_lie_in_the_fastest_level_that_still_has_room() -> None:
    assert math.isclose(move_s(500, SPEEDS), 5e-9)
    assert math.isclose(move_s(10_000, SPEEDS), 10e-9 + 900e-9)
    assert math.isclose(move_s(15_000, SPEEDS), 10e-9 + 900e-9 + 5000e-9)
    assert move_s(0, SPEEDS) == 0


def test_the_floor_is_the_longer_of_moving_and_computing(task: Task) -> None:
    axes = {"rows": 1000, "columns": 1000}
    floor = floor_of(task, axes, SPEEDS)
    assert floor and math.isclose(floor.flop_us, 10.0) and math.isclose(floor.us, floor.byte_us)
    heavy = floor_of(task.model_copy(update={"work": Work(flops="1000*rows*columns")}), axes, SPEEDS)
    assert heavy and math.isclose(heavy.us, 10_000.0) and math.isclose(heavy.least_us, 10_000.0 / 4 / MARGIN)


def test_a_task_that_states_no_work_has_no_floor_and_costs_no_measurement(task: Task, tmp_path: Path) -> None:
    assert Calibration(0, tmp_path).floor(task.model_copy(update={"work": None}), {"rows": 1, "columns": 1}) is None
    assert not list(tmp_path.glob("speeds-*"))


def test_a_claim_below_the_floor_is_seen_and_one_at_the_floor_is_not(task: Task) -> None:
    floor = floor_of(task, {"rows": 100, "columns": 100}, SPEEDS)
    assert floor
    assert timed(floor, floor.least_us * 0.9, floor.us).below_floor()
    assert not timed(floor, floor.least_us * 1.1, floor.us).below_floor()
    assert not timed(None, 0.001, 100.0).below_floor()


def test_a_floor_that_the_baseline_breaks_accuses_nobody(task: Task) -> None:
    floor = floor_of(task, {"rows": 100, "columns": 100}, SPEEDS)
    assert floor
    both = timed(floor, floor.least_us / 3, floor.least_us / 2)
    assert both.floor_is_wrong() and not both.below_floor()


def test_the_evidence_has_every_figure(task: Task) -> None:
    floor = floor_of(task, {"rows": 100, "columns": 100}, SPEEDS)
    assert floor
    evidence = timed(floor, 0.5, 100.0).below_floor_evidence()
    for figure in ("0.5 us a call", "80000 bytes", "1.128 GB/s", "10000 operations", "400 GFLOP/s", "35.5 us"):
        assert figure in evidence, evidence


def test_the_share_is_the_floor_over_the_latency(task: Task) -> None:
    floor = floor_of(task, {"rows": 100, "columns": 100}, SPEEDS)
    assert floor
    measurement = timed(floor, 4 * floor.us, 5 * floor.us).measurement()
    assert measurement.floor_us == float(f"{floor.us:.4g}") and measurement.floor_share == 0.25
    assert timed(None, 10.0, 10.0).measurement().floor_share is None


# --- calibration --------------------------------------------------------------------------------------------------


def test_a_machine_is_measured_once_and_found_again_at_the_next_start(tmp_path: Path) -> None:
    measured = Calibration(default_cpu(), tmp_path).speeds()
    assert measured.levels[-1].bytes is None and measured.machine == machine()
    bandwidths = [level.gb_s for level in measured.levels]
    assert bandwidths == sorted(bandwidths, reverse=True) and bandwidths[-1] > 0
    assert measured.fastest_gflops >= measured.gflops > 0
    store(measured.model_copy(update={"gflops": 12345.0}), tmp_path)
    assert Calibration(default_cpu(), tmp_path).speeds().gflops == 12345.0


def test_measuring_again_only_raises_figures_and_keeps_them(tmp_path: Path) -> None:
    first = Calibration(default_cpu(), tmp_path)
    low, high = {"gflops": 1e-3}, {"fastest_gflops": 1e9}
    store(first.speeds().model_copy(update=low | high), tmp_path)
    second = Calibration(default_cpu(), tmp_path)
    second.again()
    assert second.speeds().gflops > 1e-3 and second.speeds().fastest_gflops == 1e9
    assert stored(machine(), tmp_path) == second.speeds()


def test_of_two_measurements_the_larger_figures_count() -> None:
    slower = SPEEDS.model_copy(update={"gflops": 50.0, "fastest_gflops": 900.0})
    assert highest(SPEEDS, slower) == SPEEDS.model_copy(update={"fastest_gflops": 900.0})
    fewer_caches = SPEEDS.model_copy(update={"levels": SPEEDS.levels[1:]})
    assert highest(SPEEDS, fewer_caches) == fewer_caches


def test_figures_that_cannot_be_kept_are_measured_anyway(tmp_path: Path) -> None:
    no_folder = tmp_path / "file"
    no_folder.write_text("")
    assert Calibration(default_cpu(), no_folder).speeds().gflops > 0
    assert stored(machine(), no_folder) is None


def test_figures_of_another_machine_or_in_tatters_are_not_used(tmp_path: Path) -> None:
    store(SPEEDS, tmp_path)
    assert stored(SPEEDS.machine, tmp_path) == SPEEDS
    assert stored("another", tmp_path) is None
    (file,) = tmp_path.iterdir()
    for tatters in ('{"machine": ', SPEEDS.model_dump_json().replace("400.0", "0")):
        file.write_text(tatters)
        assert stored(SPEEDS.machine, tmp_path) is None


def test_caches_are_read_for_data_only_and_guessed_where_hidden(tmp_path: Path) -> None:
    for index, (kind, level, size) in enumerate(
        [("Data", 1, "48K"), ("Instruction", 1, "32K"), ("Unified", 2, "2048K")]
    ):
        folder = tmp_path / "cpu3" / "cache" / f"index{index}"
        folder.mkdir(parents=True)
        for name, value in (("type", kind), ("level", level), ("size", size)):
            (folder / name).write_text(f"{value}\n")
    assert caches(3, tmp_path) == [("L1", 48 << 10), ("L2", 2 << 20)]
    assert caches(4, tmp_path) == USUAL_CACHES


# --- through the front door ---------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_a_kernel_that_only_copies_comes_near_the_floor_and_is_believed(evaluate: Evaluate) -> None:
    result = await evaluate(cpp(LOOP), "full")
    assert result.status is Status.PASSED, result.detail
    (measured,) = result.measurements
    assert measured.floor_us and measured.latency_us and measured.floor_share
    assert measured.floor_us / MARGIN <= measured.latency_us
    assert math.isclose(measured.floor_share, measured.floor_us / measured.latency_us, rel_tol=0.02)
    assert device.devices()[0].speeds


@pytest.mark.anyio
@pytest.mark.parametrize("work", [Work(bytes="1000000*rows*columns")])
async def test_work_that_the_baseline_does_not_do_is_the_tasks_fault(evaluate: Evaluate) -> None:
    result = await evaluate(cpp(LOOP), "full")
    assert result.status is Status.PASSED, result.detail
    assert any("correct it in task.yaml" in warning for warning in result.warnings)


@pytest.mark.anyio
async def test_a_clock_that_stands_still_is_refused_with_the_figures(judge: Judge, tmp_path: Path) -> None:
    (cheat,) = [case for case in find_cases(["clock_below_floor"]) if not case.honest]
    outcome = await judged(judge, cheat, tmp_path)
    assert outcome.ok and "GB/s" in outcome.detail, outcome


@pytest.mark.parametrize("name", sorted(path.parent.name for path in SHIPPED.glob("*/task.yaml")))
def test_every_shipped_task_states_its_work_and_no_byte_that_does_not_exist(name: str) -> None:
    task = read_task(SHIPPED / name)
    assert task.work
    for workload in task.workloads:
        sizes = task.sizes(workload.axes)
        specs: list[Any] = [*task.inputs.values(), *task.outputs.values()]
        tensors = [math.prod(size_of(axis, sizes) for axis in spec.shape) for spec in specs if spec.shape is not None]
        assert 0 < size_of(task.work.bytes, sizes) <= 8 * sum(tensors)
        assert size_of(task.work.flops, sizes) > 0
