"""The pairs of one workload on a device and what they show: times, ratios, doubts. Knows no process and no memory.

A call's time is what the device's events say, where the judge's clock bears it out: what a burst of several calls takes
longer than a burst of one, by the judge's clock, is the time of those calls and of what the worker does around each. As
much as that is more than for the baseline, beyond its own events, is work that the candidate's events do not show.
"""

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field

from toolkits.core.judge import timing
from toolkits.core.judge.floor import Floor
from toolkits.core.judge.gpu_calls import Burst
from toolkits.core.schema import Cold, Interval, Measurement, Status, Verdict, Workload

SLACK_NS, SLACK = 2_000, 0.03
"""Unexplained time that is not charged: the larger of these, ns and share of the claim, or the session's own noise."""
LIE_NS, LIE = 20_000, 0.5
"""More than both unexplained, and the noise many times over: events that were tampered with, or work beside them."""
LIE_NOISE = 4.0
ELSEWHERE_NS = 100_000
"""Time of a pair's requests that bring no figure, beyond the baseline's and the noise: there is nothing to compute."""
SCALE_NS = 1e9


@dataclass(frozen=True)
class Side:
    """One side of a pair."""

    claimed_ns: float
    """Of a call, by events: mean of the burst."""
    slope_ns: float
    """Of a call and of what surrounds it, by the judge's clock."""
    host_ns: float
    """Of a call, by the worker's clock on the host: what launching took."""
    elsewhere_ns: float = 0.0
    """Of all other requests of the pair, by the judge's clock: contents sent ahead, and an answer fetched."""

    @property
    def around_ns(self) -> float:
        """What the events do not show."""
        return self.slope_ns - self.claimed_ns


def side(one: Burst, many: Burst) -> Side:
    """From a burst of one call and a burst of several."""
    calls = len(many.claimed_ns)
    claimed = statistics.fmean(many.claimed_ns)
    slope = (many.wall_ns - one.wall_ns) / (calls - 1) - (sum(many.claimed_ns) - one.claimed_ns[0]) / (calls - 1)
    return Side(claimed, slope + claimed, statistics.fmean(many.host_ns))


@dataclass
class GpuTimed:
    """The pairs of one workload."""

    workload: Workload
    floor: Floor | None = None
    candidate: list[Side] = field(default_factory=list[Side])
    baseline: list[Side] = field(default_factory=list[Side])
    aa: list[float] = field(default_factory=list[float])
    cold: list[tuple[Side, Side]] = field(default_factory=list[tuple[Side, Side]])
    """Candidate and baseline with an empty last-level cache."""
    graphs: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    """The same replayed from a graph, warm, in ns."""
    no_graph: str = ""
    """Why there are none."""
    checked: int = 0

    @property
    def pairs(self) -> int:
        return len(self.candidate)

    @property
    def ratios(self) -> list[float]:
        """Baseline over candidate, a pair each, with what the candidate does not explain charged to it."""
        return self._ratios(self.charge_ns())

    def _ratios(self, charge_ns: float) -> list[float]:
        pairs = zip(self.baseline, self.candidate, strict=True)
        return [b.claimed_ns / (c.claimed_ns + charge_ns) for b, c in pairs]

    def add(self, candidate: Side, baseline: Side, twin: Side | None) -> None:
        self.candidate.append(candidate)
        self.baseline.append(baseline)
        if twin:
            self.aa.append(baseline.claimed_ns / twin.claimed_ns)

    def unexplained_ns(self) -> float:
        """What a call of the candidate takes by the judge's clock beyond its events, and beyond the baseline's."""
        around = [_median(each.around_ns for each in sides) for sides in (self.candidate, self.baseline)]
        return around[0] - around[1]

    def noise_ns(self) -> float:
        """How well the judge's clock knows the median of that, from what the baseline shows."""
        around = [each.around_ns for each in self.baseline]
        middle = statistics.median(around)
        return 2.0 * _median(abs(one - middle) for one in around) / max(len(around), 1) ** 0.5

    def charge_ns(self) -> float:
        """What is added to each of the candidate's times."""
        unexplained = self.unexplained_ns()
        return unexplained if unexplained > max(SLACK_NS, SLACK * self._claim_ns(), self.noise_ns()) else 0.0

    def claims_lie(self) -> bool:
        return self.unexplained_ns() > max(LIE_NS, LIE * self._claim_ns(), LIE_NOISE * self.noise_ns())

    def works_elsewhere(self) -> bool:
        """Whether the candidate is surely busy when it is only given contents or asked for an answer."""
        return _interval_ns(self._elsewhere()).low > ELSEWHERE_NS

    def _elsewhere(self) -> list[float]:
        return [c.elsewhere_ns - b.elsewhere_ns for c, b in zip(self.candidate, self.baseline, strict=True)]

    def below_floor(self) -> bool:
        """Whether the events claim what no kernel can do; a floor that the baseline breaks too is a wrong one."""
        return bool(self.floor) and self._claim_ns() / 1e3 < self.floor.least_us and not self.floor_is_wrong()

    def floor_is_wrong(self) -> bool:
        return bool(self.floor) and _median(b.claimed_ns for b in self.baseline) / 1e3 < self.floor.least_us

    def below_floor_evidence(self) -> str:
        return self.floor.evidence(self._claim_ns() / 1e3) if self.floor else ""

    def _claim_ns(self) -> float:
        return _median(each.claimed_ns for each in self.candidate)

    def speedup(self) -> Interval:
        return timing.interval(self.ratios)

    def aa_factor(self) -> float:
        return timing.aa_factor(self.aa)

    def verdict(self) -> Verdict:
        """Slower for a charge alone is said of nobody, and faster of nobody who may have worked unseen."""
        found = timing.verdict(self.speedup(), self.aa_factor())
        if found is Verdict.SLOWER and self.charge_ns():
            found = Verdict.INCONCLUSIVE if timing.interval(self._ratios(0.0)).high >= 1.0 else found
        if found is Verdict.FASTER:
            hidden = timing.interval(self._ratios(max(self.unexplained_ns(), 0.0))).low <= 1.0
            busy = _interval_ns(self._elsewhere()).value > ELSEWHERE_NS
            found = Verdict.INCONCLUSIVE if hidden or busy else found
        return found

    def decided(self) -> bool:
        return self.verdict() is not Verdict.INCONCLUSIVE

    def measurement(self) -> Measurement:
        charge, asking = self.charge_ns(), _median(b.around_ns for b in self.baseline)
        latency = self._claim_ns() + charge
        return Measurement(
            workload=self.workload.uuid,
            axes=self.workload.axes,
            status=Status.PASSED,
            latency_us=_us(latency),
            baseline_us=_us(_median(b.claimed_ns for b in self.baseline)),
            wall_us=_us(_median(c.slope_ns for c in self.candidate) - asking),
            baseline_wall_us=_us(_median(b.slope_ns for b in self.baseline) - asking),
            floor_us=float(f"{self.floor.us:.4g}") if self.floor else None,
            floor_share=float(f"{self.floor.us / (latency / 1e3):.3g}") if self.floor else None,
            speedup=self.speedup(),
            aa_factor=self.aa_factor(),
            verdict=self.verdict(),
            pairs=self.pairs,
            checked=self.checked,
            cold=self._cold(),
            host_us=_us(_median(c.host_ns for c in self.candidate)),
            graph_us=_us(_median(c for c, _ in self.graphs)) if self.graphs else None,
            baseline_graph_us=_us(_median(b for _, b in self.graphs)) if self.graphs else None,
        )

    def _cold(self) -> Cold | None:
        """With what the warm pairs leave unexplained charged here too."""
        if not self.cold:
            return None
        charge = self.charge_ns()
        times = [(c.claimed_ns + charge, b.claimed_ns) for c, b in self.cold]
        ratios = [b / c for c, b in times]
        return Cold(
            latency_us=_us(_median(c for c, _ in times)),
            baseline_us=_us(_median(b for _, b in times)),
            speedup=timing.interval(ratios) if len(ratios) >= timing.CHECKPOINTS[0] else None,
            ratio=statistics.median(ratios),
            pairs=len(ratios),
        )


def _interval_ns(figures: list[float]) -> Interval:
    """The median of figures of any sign, with its 99 % interval."""
    found = timing.interval([math.exp(figure / SCALE_NS) for figure in figures])
    return Interval(**{name: math.log(value) * SCALE_NS for name, value in found.model_dump().items()})


def _median(figures: Iterable[float]) -> float:
    return statistics.median(figures)


def _us(nanoseconds: float) -> float:
    return round(nanoseconds / 1e3, 2)
