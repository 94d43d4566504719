"""What was measured on a device as part of a BenchmarkResult. Knows no process and no memory."""

import statistics

from toolkits.core.judge import timing
from toolkits.core.judge.gpu_timed import GpuTimed
from toolkits.core.schema import Verdict

CLOCK = (
    "device events around each call, all streams waited for, borne out by the judge's wall clock over bursts of one and"
    " of several calls; what that clock sees more is charged"
)
STAND_IN_CLOCK = "the host's clock in a stand-in for a driver: no figure here is a GPU's"
REGIME = (
    "run_only, warm: inputs were just written on the device, outputs preallocated, every call on new content; cold: the"
    " last-level cache flushed before each call; graph: the call replayed"
)


def speed(timed: list[GpuTimed], *, stand_in: bool) -> dict[str, object]:
    """The fields that say how fast a candidate is, over all workloads."""
    measurements = [one.measurement() for one in timed]
    speedups = {one.workload.uuid: one.speedup().value for one in timed}
    mean = timing.geometric_mean([one.ratios for one in timed])
    worst = min(speedups, key=lambda uuid: speedups[uuid])
    cold = [measured.cold.ratio for measured in measurements if measured.cold]
    verdict = timing.verdict(mean, max(one.aa_factor() for one in timed))
    if verdict is Verdict.SLOWER and any(one.charge_ns() and not one.decided() for one in timed):
        verdict = Verdict.INCONCLUSIVE
    return {
        "measurements": measurements,
        "verdict": verdict,
        "speedup": mean,
        "arithmetic_mean": statistics.fmean(speedups.values()),
        "worst": speedups[worst],
        "worst_workload": worst,
        "below_one": sum(value < 1.0 for value in speedups.values()),
        "cold_ratio": statistics.geometric_mean(cold) if cold else None,
        "cold_below_one": sum(ratio < 1.0 for ratio in cold),
        "passed": len(measurements),
        "total": len(measurements),
        "clock": STAND_IN_CLOCK if stand_in else CLOCK,
        "regime": REGIME,
    }


def no_graphs(timed: list[GpuTimed]) -> dict[str, str]:
    """For the record: why a workload has no figure from a graph."""
    found = [f"{one.workload.uuid}: {one.no_graph}" for one in timed if one.no_graph]
    return {"no_graph": "; ".join(found)} if found else {}


def warnings(timed: list[GpuTimed]) -> list[str]:
    """What makes the figures doubtful."""
    return [
        f"the baseline does {one.workload.uuid} in less than half of what the task's `work` needs: correct it in"
        " task.yaml; until then no latency of this workload is held against it"
        for one in timed
        if one.floor_is_wrong()
    ]
