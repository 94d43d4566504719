"""What bursts on a device show: the judge's clock against the events, and what an honest session's noise excuses."""

from dataclasses import replace
from pathlib import Path

import pytest

from toolkits.core.judge.floor import Floor
from toolkits.core.judge.gpu_calls import Burst
from toolkits.core.judge.gpu_speeds import Figures, device_speeds
from toolkits.core.judge.gpu_timed import GpuTimed, side
from toolkits.core.schema import Verdict, Workload

REQUEST_NS, AROUND_NS, CALLS = 400_000, 70_000, 8
"""What one request costs, and each call in it beside the kernel: flush, copies, waiting."""
NOISE_NS = (0, 900, -700, 300, -1_100, 500, -200, 800, -600, 100)


def _burst(calls: int, kernel_ns: int, claim_ns: int, noise_ns: int) -> Burst:
    wall = REQUEST_NS + calls * (kernel_ns + AROUND_NS) + noise_ns
    return Burst((claim_ns,) * calls, (5_000,) * calls, wall)


def _timed(kernel_ns: int, claim_ns: int, baseline_ns: int = 40_000, floor: Floor | None = None) -> GpuTimed:
    """Ten pairs against a baseline that claims what it takes."""
    timed = GpuTimed(Workload(uuid="big", axes={}), floor)
    for at, noise in enumerate(NOISE_NS):
        pair = [
            side(_burst(1, kernel, claim, -noise), _burst(CALLS, kernel, claim, 3 * noise))
            for kernel, claim in ((kernel_ns + noise // 10, claim_ns + noise // 10), (baseline_ns, baseline_ns))
        ]
        timed.add(pair[0], pair[1], pair[1] if at % 2 else None)
    return timed


def test_an_honest_kernel_is_charged_nothing_and_its_times_are_its_events() -> None:
    timed = _timed(kernel_ns=20_000, claim_ns=20_000)
    assert timed.charge_ns() == 0 and not timed.claims_lie() and timed.verdict() is Verdict.FASTER
    measured = timed.measurement()
    assert measured.latency_us == pytest.approx(20, abs=0.1) and measured.wall_us == pytest.approx(20, abs=0.5)
    assert measured.baseline_us == 40.0 and measured.host_us == 5.0 and measured.graph_us is None


def test_work_that_the_events_do_not_show_is_charged_or_called_a_lie() -> None:
    little = _timed(kernel_ns=40_000, claim_ns=32_000)
    assert 7_000 < little.charge_ns() < 9_000 and not little.claims_lie()
    assert little.verdict() is not Verdict.FASTER
    assert little.measurement().latency_us == pytest.approx(40, abs=0.5)
    assert _timed(kernel_ns=40_000, claim_ns=2_500).claims_lie()


def test_who_is_busy_between_the_measured_requests_is_found_out_and_in_noise_not_called_faster() -> None:
    timed, noisy, honest = (_timed(kernel_ns=3_000, claim_ns=3_000) for _ in range(3))
    for one, excess, noise in ((timed, 300_000, 30), (noisy, 300_000, 900), (honest, 0, 900)):
        for at, noise_ns in enumerate(NOISE_NS):
            elsewhere = 2_000_000 + excess + noise * noise_ns
            one.candidate[at] = replace(one.candidate[at], elsewhere_ns=elsewhere)
            one.baseline[at] = replace(one.baseline[at], elsewhere_ns=2_000_000)
    assert timed.works_elsewhere()
    assert not noisy.works_elsewhere() and noisy.verdict() is Verdict.INCONCLUSIVE
    assert not honest.works_elsewhere() and honest.verdict() is Verdict.FASTER


def test_a_slower_kernel_that_claims_more_than_it_takes_gains_nothing() -> None:
    timed = _timed(kernel_ns=40_000, claim_ns=60_000)
    assert timed.charge_ns() == 0 and timed.verdict() is Verdict.SLOWER


def test_a_claim_below_the_devices_floor_is_evidence_unless_the_baseline_breaks_it_too() -> None:
    floor = Floor(1 << 30, 0, 250.0, 0.0, 0.0, 4_300.0, 1.0)
    assert _timed(100_000, 100_000, baseline_ns=300_000, floor=floor).below_floor()
    both = _timed(100_000, 100_000, baseline_ns=100_000, floor=floor)
    assert not both.below_floor() and both.floor_is_wrong()


def test_a_devices_speeds_are_measured_once_and_kept(tmp_path: Path) -> None:
    asked = list[float]()
    figures = Figures("NVIDIA H200", "sm_90", 132, 1_980_000, 60 << 20)

    def copied() -> float:
        asked.append(4_300.0)
        return asked[-1]

    speeds = [device_speeds(figures, copied, tmp_path) for _ in range(2)]
    assert speeds[0] == speeds[1] and len(asked) == 1
    # The vendor's sparse fp8 figure is 3,958 TFLOP/s: a roof must not be below what a kernel may reach.
    assert speeds[0].levels[-1].gb_s == 4_300.0 and speeds[0].fastest_gflops > 3_958_000
