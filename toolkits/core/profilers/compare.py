"""What changed between two reports: kernels paired by name, ratios, and which limits moved. Pure."""

from collections.abc import Iterator, Sequence

from toolkits.core.profilers.gpu_verdict import short
from toolkits.core.schema import Change, KernelProfile, ProfileReport

KERNEL_FIGURES = (
    "duration_us",
    "launches",
    "memory_share",
    "dram_share",
    "dram_bytes",
    "l2_hit_share",
    "l1_hit_share",
    "compute_share",
    "tensor_share",
    "issue_share",
    "occupancy",
    "occupancy_possible",
    "registers",
    "accumulation_registers",
    "shared_bytes",
    "scratch_bytes",
    "local_requests",
    "active_lanes",
    "flops",
)
REPORT_FIGURES = (
    "duration_us",
    "launches",
    "busy_share",
    "instructions",
    "cycles",
    "data_reads",
    "data_writes",
    "l1_misses",
    "ll_misses",
    "branches",
    "branch_misses",
)
LEAST = 0.02
"""Ratios nearer to 1 than this are no change."""


def changes(before: ProfileReport, after: ProfileReport) -> list[Change]:
    """Every figure that both or only one of them has and that moved; the whole first, then kernel by kernel."""
    olds = {kernel.name: kernel for kernel in before.kernels}
    paired = [(olds[kernel.name], kernel) for kernel in after.kernels if kernel.name in olds]
    found = [*_moved("", before, after, REPORT_FIGURES)]
    for old, new in paired:
        found += _moved(new.name, old, new, KERNEL_FIGURES)
    return found


def verdict(before: ProfileReport, after: ProfileReport) -> str:
    """One line: how much faster or slower, and what limits now."""
    measure = "duration_us" if before.kernels or after.kernels else "instructions"
    old, new = (_figure(report, measure) for report in (before, after))
    unit = "kernel time" if before.kernels or after.kernels else "instructions"
    if old and new:
        # The judge alone may call something faster.
        pace = f"{unit} {_shown(measure, old)} to {_shown(measure, new)} ({new / old:.3g}x)"
    else:
        pace = f"{unit} not measured in both"
    limit = (
        f"still limited by {after.bottleneck}"
        if before.bottleneck == after.bottleneck
        else f"limited by {before.bottleneck} before and by {after.bottleneck} now"
    )
    return "; ".join([f"{pace}; {limit}", *_kernel_set(before, after)])


def notes(before: ProfileReport, after: ProfileReport) -> list[str]:
    """What makes the comparison doubtful, and the limits that moved a kernel."""
    found = [
        f"{what} differ: {old} and {new}"
        for what, old, new in (
            ("tools", before.tool, after.tool),
            ("devices", before.device, after.device),
            ("architectures", before.architecture, after.architecture),
        )
        if old and new and old != new
    ]
    return [*found, *_limits(before, after)]


def line(change: Change) -> str:
    """One change to read."""
    where = f"{short(change.kernel)}: " if change.kernel else ""
    if change.before is None or change.after is None:
        had = "only before" if change.after is None else "only after"
        value = change.before if change.after is None else change.after
        return f"{where}{change.what} {_shown(change.what, value or 0.0)}, measured {had}"
    ratio = f" ({change.ratio:.3g}x)" if change.ratio is not None else ""
    return f"{where}{change.what} {_shown(change.what, change.before)} to {_shown(change.what, change.after)}{ratio}"


def _moved(
    kernel: str, before: ProfileReport | KernelProfile, after: ProfileReport | KernelProfile, names: Sequence[str]
) -> Iterator[Change]:
    for name in names:
        old, new = _figure(before, name), _figure(after, name)
        if old == new or (old and new and abs(new / old - 1) < LEAST):
            continue
        ratio = new / old if old and new is not None else None
        yield Change(kernel=kernel, what=name, before=old, after=new, ratio=ratio)


def _figure(held: ProfileReport | KernelProfile, name: str) -> float | None:
    value: float | None = getattr(held, name)
    return value


def _kernel_set(before: ProfileReport, after: ProfileReport) -> list[str]:
    olds, news = ({kernel.name for kernel in report.kernels} for report in (before, after))
    gone, come = sorted(olds - news), sorted(news - olds)
    return [
        f"{len(names)} kernels only {when}: {', '.join(map(short, names[:3]))}{', ...' if len(names) > 3 else ''}"
        for names, when in ((gone, "before"), (come, "after"))
        if names
    ]


def _limits(before: ProfileReport, after: ProfileReport) -> Iterator[str]:
    olds = {kernel.name: kernel for kernel in before.kernels}
    for new in after.kernels:
        old = olds.get(new.name)
        if old and old.bottleneck != new.bottleneck:
            yield f"{short(new.name)}: limited by {old.bottleneck} before and by {new.bottleneck} now"
        if old and old.occupancy_limits != new.occupancy_limits:
            limits = (", ".join(kernel.occupancy_limits) or "nothing" for kernel in (old, new))
            yield f"{short(new.name)}: occupancy limited by {next(limits)} before and by {next(limits)} now"


def _shown(what: str, value: float) -> str:
    if what.endswith("_share") or what in {"occupancy", "occupancy_possible", "active_lanes"}:
        return f"{value:.1%}"
    if what == "duration_us":
        return f"{value:,.1f} us"
    return f"{value:,.0f}"
