"""Many launches to one profile a kernel, and those to one report: pure, and the same for every vendor."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from toolkits.core.profilers import gpu_verdict
from toolkits.core.schema import KernelProfile, ProfileReport, Stall

MEANS = (
    "waves",
    "memory_share",
    "dram_share",
    "dram_gb_s",
    "l2_share",
    "l2_hit_share",
    "l1_share",
    "l1_hit_share",
    "compute_share",
    "tensor_share",
    "issue_share",
    "occupancy",
    "occupancy_possible",
    "active_lanes",
    "uniform_branches",
)
"""Weighed by duration: what a kernel does most of the time counts most."""
PLAIN_MEANS = ("dram_bytes", "local_requests", "flops")
STALLS = 5


def merged(launches: Iterable[KernelProfile]) -> list[KernelProfile]:
    """One profile a name, those that took most time first."""
    groups: defaultdict[str, list[KernelProfile]] = defaultdict(list)
    for launch in launches:
        groups[launch.name].append(launch)
    return ordered([_one(group) for group in groups.values()])


def ordered(kernels: Iterable[KernelProfile]) -> list[KernelProfile]:
    """By total time, with each kernel's share of it; kernels without a time come last."""
    held = list(kernels)
    everything = sum(kernel.total_us or 0.0 for kernel in held)
    shared = [
        kernel.model_copy(update={"share": kernel.total_us / everything})
        if kernel.total_us is not None and everything
        else kernel
        for kernel in held
    ]
    return sorted(shared, key=lambda kernel: (-(kernel.total_us or 0.0), -kernel.launches, kernel.name))


def report(kernels: Sequence[KernelProfile], about: ProfileReport) -> ProfileReport:
    """The kernels with their verdicts, under a summary; `about` says what tool, target and device they are of."""
    judged = [gpu_verdict.judged(kernel) for kernel in ordered(kernels)]
    totals = [kernel.total_us for kernel in judged if kernel.total_us is not None]
    whole = about.model_copy(
        update={
            "kernels": judged,
            "launches": sum(kernel.launches for kernel in judged),
            "duration_us": sum(totals) if totals else None,
        }
    )
    return gpu_verdict.summarised(whole)


def _one(group: Sequence[KernelProfile]) -> KernelProfile:
    longest = max(group, key=lambda launch: launch.duration_us or 0.0)
    if len(group) > 1:
        timed = [launch for launch in group if launch.total_us is not None]
        total = sum(launch.total_us or 0.0 for launch in timed)
        update: dict[str, object] = {
            "launches": sum(launch.launches for launch in group),
            "total_us": total if timed else None,
            "duration_us": total / sum(launch.launches for launch in timed) if timed else None,
        }
        update |= {name: _mean(group, name, weighed=True) for name in MEANS}
        update |= {name: _mean(group, name, weighed=False) for name in PLAIN_MEANS}
        update |= {"pipes": _mean_pipes(group), "stalls": _mean_stalls(group)}
        return longest.model_copy(update=update)
    return longest


def _mean(group: Sequence[KernelProfile], name: str, *, weighed: bool) -> float | None:
    found = [
        (value, (launch.total_us or 1.0) if weighed else launch.launches)
        for launch in group
        if (value := _figure(launch, name)) is not None
    ]
    return sum(value * weight for value, weight in found) / sum(weight for _, weight in found) if found else None


def _figure(kernel: KernelProfile, name: str) -> float | None:
    value: float | None = getattr(kernel, name)
    return value


def _mean_pipes(group: Sequence[KernelProfile]) -> dict[str, float]:
    names = dict.fromkeys(name for launch in group for name in launch.pipes)
    return {name: _weighed([(launch.pipes.get(name, 0.0), launch.total_us) for launch in group]) for name in names}


def _mean_stalls(group: Sequence[KernelProfile]) -> list[Stall]:
    having = [launch for launch in group if launch.stalls]
    names = dict.fromkeys(stall.reason for launch in having for stall in launch.stalls)
    shares = {
        name: _weighed([({s.reason: s.share for s in one.stalls}.get(name, 0.0), one.total_us) for one in having])
        for name in names
    }
    ranked = sorted(shares.items(), key=lambda item: -item[1])
    return [Stall(reason=name, share=share) for name, share in ranked[:STALLS]]


def _weighed(values: Sequence[tuple[float, float | None]]) -> float:
    total = sum(weight or 1.0 for _, weight in values)
    return sum(value * (weight or 1.0) for value, weight in values) / total
