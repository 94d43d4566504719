"""From counts to one line: what limits a kernel, with the evidence and what to try. Pure."""

from dataclasses import dataclass, fields

from toolkits.core.schema import Bottleneck

CYCLES_INSTRUCTION = 1 / 3
CYCLES_L1_MISS = 2.0
CYCLES_LL_MISS = 20.0
CYCLES_BRANCH_MISS = 15.0
# Misses cost less than their latency because they overlap and are prefetched. Set by hand, on a few kernels of one
# machine: enough to name the largest part, never to predict a time.
COST_MODEL = (
    f"estimated cycles = instructions / 3 + {CYCLES_L1_MISS:.0f} a first-level miss + {CYCLES_LL_MISS:.0f} more a"
    f" last-level miss + {CYCLES_BRANCH_MISS:.0f} a mispredicted branch"
)


@dataclass(frozen=True)
class Counts:
    """What a profiler counted, in one vocabulary; None is not measured."""

    instructions: int | None = None
    cycles: int | None = None
    data_reads: int | None = None
    data_writes: int | None = None
    l1_misses: int | None = None
    ll_misses: int | None = None
    branches: int | None = None
    branch_misses: int | None = None

    def measured(self) -> dict[str, int | None]:
        """By name, as the fields of a ProfileReport."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def verdict(counts: Counts) -> tuple[Bottleneck, str]:
    """The largest part of the estimated cycles names the bottleneck."""
    if not counts.instructions:
        return "unknown", "no instructions were counted, so nothing is known"
    parts = {
        "compute": counts.instructions * CYCLES_INSTRUCTION,
        "first": (counts.l1_misses or 0) * CYCLES_L1_MISS,
        "last": (counts.ll_misses or 0) * CYCLES_LL_MISS,
        "branches": (counts.branch_misses or 0) * CYCLES_BRANCH_MISS,
    }
    everything = sum(parts.values())
    memory = parts["first"] + parts["last"]
    if memory >= max(parts["compute"], parts["branches"]):
        return "memory", _memory(counts, memory / everything, parts["last"] > parts["first"])
    if parts["branches"] > parts["compute"]:
        return "branches", _branches(counts, parts["branches"] / everything)
    return "compute", _compute(counts, parts["compute"] / everything)


def _memory(counts: Counts, share: float, last_level: bool) -> str:
    misses, level = (counts.ll_misses, "last-level") if last_level else (counts.l1_misses, "first-level")
    among = f"in {counts.instructions:,} instructions"
    advice = (
        "move less data: fuse passes, keep tiles in cache, smaller types"
        if last_level
        else "tile or reorder the loops so that the inner one walks contiguous memory that stays in the first level"
    )
    return f"memory: {misses or 0:,} {level} data misses {among}, {share:.0%} of the estimated cycles; {advice}"


def _branches(counts: Counts, share: float) -> str:
    return (
        f"branches: {counts.branch_misses or 0:,} of {counts.branches or 0:,} mispredicted, {share:.0%} of the"
        " estimated cycles; replace data-dependent branches by min, max or masks"
    )


def _compute(counts: Counts, share: float) -> str:
    pace = f", {(counts.instructions or 0) / counts.cycles:.2f} a cycle" if counts.cycles else ""
    advice = (
        "run fewer or wider ones: vectorise, unroll into independent accumulators, hoist what repeats"
        if not counts.cycles or (counts.instructions or 0) >= counts.cycles
        else "few a cycle: break dependency chains with independent accumulators, avoid division"
    )
    return f"compute: {counts.instructions or 0:,} instructions{pace}, {share:.0%} of the estimated cycles; {advice}"
