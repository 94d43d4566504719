"""Statistics of paired timing: interval of the median log ratio, verdicts, aggregates. Pure functions over numbers.

Pairs come from two processes on one core in random order, so a ratio is free of drift. Intervals are at 99 %: at 95 %
a kernel against itself was called different in one comparison of twenty.
"""

import math
from collections.abc import Sequence
from math import comb

import numpy as np
from numpy.typing import NDArray

from toolkits.core.schema import Interval, Verdict

ALPHA = 0.01
TIE_BAND = 0.02
"""An interval that lies within 1 +- this is a tie: the difference is real or not, but too small to matter."""
CHECKPOINTS = (8, 12, 18, 27, 40)
"""Numbers of pairs after which the interval is looked at; eight is the least that carries a 99 % interval."""
BOOTSTRAPS = 1000

Ratios = Sequence[float]
"""Baseline time over candidate time, a pair each."""


def interval(ratios: Ratios) -> Interval:
    """Median ratio with the exact order-statistics interval of the median (sign test), at 99 %."""
    ordered = sorted(ratios)
    n = len(ordered)
    rank = _sign_rank(n)
    return Interval(value=_median(ordered), low=ordered[rank], high=ordered[n - 1 - rank])


def _sign_rank(n: int) -> int:
    """How many extreme values either end of the interval may drop."""
    rank, tail = 0, 0.0
    while True:
        tail += comb(n, rank) / 2**n
        if 2 * tail > ALPHA:
            return max(rank - 1, 0)
        rank += 1


def _median(ordered: Ratios) -> float:
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else math.sqrt(ordered[half - 1] * ordered[half])


def verdict(speedup: Interval, aa_factor: float) -> Verdict:
    """A claim needs the whole interval beyond 1.0 and beyond what the baseline shows against itself."""
    if speedup.low > max(1.0, aa_factor):
        return Verdict.FASTER
    if speedup.high < 1.0 / max(1.0, aa_factor):
        return Verdict.SLOWER
    if speedup.low >= 1.0 - TIE_BAND and speedup.high <= 1.0 + TIE_BAND:
        return Verdict.TIE
    return Verdict.INCONCLUSIVE


def aa_factor(ratios: Ratios) -> float:
    """How far the baseline seems from itself: 1.0 is no noise, 1.03 is three percent."""
    return math.exp(abs(math.log(_median(sorted(ratios)))))


def geometric_mean(per_workload: Sequence[Ratios]) -> Interval:
    """Geometric mean of the workloads' medians; the interval resamples pairs within each workload (seeded, 99 %).

    One workload needs no resampling, and its exact interval covers better.
    """
    if len(per_workload) == 1:
        return interval(per_workload[0])
    random = np.random.default_rng(0)
    logs = [np.log(np.asarray(ratios, dtype=np.float64)) for ratios in per_workload]
    means = np.mean([_resampled_medians(values, random) for values in logs], axis=0)
    low, high = np.quantile(means, [ALPHA / 2, 1 - ALPHA / 2])
    return Interval(value=centre(per_workload), low=math.exp(low), high=math.exp(high))


def centre(per_workload: Sequence[Ratios]) -> float:
    """Geometric mean of the workloads' medians, without an interval."""
    return math.exp(math.fsum(math.log(_median(sorted(ratios))) for ratios in per_workload) / len(per_workload))


def _resampled_medians(values: NDArray[np.float64], random: np.random.Generator) -> NDArray[np.float64]:
    picks = random.integers(0, len(values), size=(BOOTSTRAPS, len(values)))
    half = len(values) // 2
    halves = [half] if len(values) % 2 else [half - 1, half]
    return np.partition(values[picks], halves, axis=1)[:, halves].mean(axis=1)
