"""Nsight Compute's figures of one launch as a KernelProfile. Pure; knows nothing of files."""

import re
from collections.abc import Iterator, Sequence

from toolkits.core.profilers.ncu_flops import flops_of, roofline_of
from toolkits.core.profilers.ncu_metrics import (
    DRAM_BYTES,
    DRAM_RATE,
    DURATION,
    LANES,
    LIMITS,
    LOCAL,
    REGISTERS,
    SHARED,
    SHARES,
    STALL_NAMES,
    WAVES,
    Launch,
    Rule,
)
from toolkits.core.schema import KernelProfile, Stall

WARP = 32
STALLS, ADVICE, ADVICE_LENGTH = 5, 3, 400
UNCOALESCED = 0.25
"""Share of sectors that are moved in vain from which the access pattern counts as a symptom."""
_PIPE = re.compile(
    r"sm__(?:inst_executed_)?pipe_(\w+?)(?:_cycles_active|_pred_on_any)?\.avg\.pct_of_peak_sustained_(?:active|elapsed)"
)
_STALL = re.compile(r"smsp__average_warps?_(?:issue|latency_issue)_stalled_(\w+?)(?:_per_issue_active)?\.ratio")
_SAMPLED = re.compile(r"smsp__pcsamp_warps_issue_stalled_(\w+?)")
_TOLD_STALL = re.compile(r"being stalled (?:waiting )?(?:for |on )?(.+?)\. .*?represents about ([\d.]+)%", re.DOTALL)
_EXCESSIVE = re.compile(r"excessive sectors \(([\d.]+)% of")
_ISSUING = {"selected"}


def profile(launch: Launch) -> KernelProfile:
    """The launch in the vocabulary of every vendor."""
    seconds = launch.value(DURATION, "second")
    micros = seconds * 1e6 if seconds is not None else None
    rate = launch.value(DRAM_RATE, "byte/second")
    moved = _sum(launch, DRAM_BYTES) or (rate * seconds if rate is not None and seconds else None)
    tensor, pipes = _pipes(launch)
    lanes = launch.value(LANES)
    registers = launch.value(REGISTERS)
    shares = {name: launch.value(names, "share") for name, names in SHARES.items()}
    flops = flops_of(launch, seconds)
    return KernelProfile(
        name=launch.name,
        launches=launch.launches,
        duration_us=micros,
        total_us=micros * launch.launches if micros is not None else None,
        grid=launch.grid,
        block=launch.block,
        waves=launch.value(WAVES),
        dram_gb_s=rate / 1e9 if rate is not None else None,
        dram_bytes=moved,
        tensor_share=tensor,
        pipes=pipes,
        occupancy_limits=_limits(launch),
        registers=int(registers) if registers is not None else None,
        shared_bytes=_whole([launch.value(names) for names in SHARED]),
        local_requests=_whole([launch.value(names) for names in LOCAL]),
        stalls=_stalls(launch),
        active_lanes=lanes / WARP if lanes is not None else None,
        flops=sum(flops.values()) if flops else None,
        # Tensor operations have a roof of their own, and are not among the operations counted here.
        roofline=roofline_of(launch, flops, moved, micros) if not tensor else None,
        symptoms=_symptoms(launch),
        advice=_advice(launch.rules),
    ).model_copy(update=shares)


def _sum(launch: Launch, names: Sequence[str]) -> float | None:
    found = [launch.value((name,)) for name in names]
    return sum(value for value in found if value is not None) if None not in found else None


def _whole(found: Sequence[float | None]) -> int | None:
    """The sum of what was measured; None where nothing was."""
    values = [value for value in found if value is not None]
    return int(sum(values)) if values else None


def _pipes(launch: Launch) -> tuple[float | None, dict[str, float]]:
    """The tensor pipe, and the other compute pipes that did something."""
    tensor: list[float] = []
    others: dict[str, float] = {}
    for name, (value, unit) in launch.metrics.items():
        match = _PIPE.fullmatch(name)
        if match and unit == "share" and "tensor" in match[1]:
            tensor.append(value)
        elif match and unit == "share" and match[1] != "shared":
            others[match[1]] = max(value, others.get(match[1], 0.0))
    ranked = sorted(others.items(), key=lambda item: -item[1])
    return max(tensor, default=None), {name: value for name, value in ranked if value > 0}


def _limits(launch: Launch) -> list[str]:
    """What allows the fewest blocks; nothing where all warps fit."""
    if (launch.value(SHARES["occupancy_possible"], "share") or 0.0) >= 1:
        return []
    found = {what: value for what, names in LIMITS.items() if (value := launch.value(names)) is not None}
    return [what for what, blocks in found.items() if blocks == min(found.values())]


def _stalls(launch: Launch) -> list[Stall]:
    waits = dict(_measured(launch, _STALL)) or dict(_measured(launch, _SAMPLED))
    total = sum(waits.values())
    if total:
        shares = [
            (STALL_NAMES.get(name, name.replace("_", " ")), value / total)
            for name, value in waits.items()
            if name not in _ISSUING
        ]
    else:
        shares = list(_told(launch.rules))
    ranked = sorted(shares, key=lambda item: -item[1])[:STALLS]
    return [Stall(reason=reason, share=share) for reason, share in ranked if share > 0]


def _measured(launch: Launch, pattern: re.Pattern[str]) -> Iterator[tuple[str, float]]:
    for name, (value, _) in launch.metrics.items():
        if match := pattern.fullmatch(name):
            yield match[1], value


def _told(rules: Sequence[Rule]) -> Iterator[tuple[str, float]]:
    """The details page has stalls only in the sentences of its advice."""
    for rule in rules:
        if match := _TOLD_STALL.search(rule.text):
            yield match[1], float(match[2]) / 100


def _symptoms(launch: Launch) -> list[str]:
    found: list[str] = []
    for rule in launch.rules:
        excessive = _EXCESSIVE.search(rule.text)
        if rule.name == "UncoalescedGlobalAccess" and excessive and float(excessive[1]) / 100 >= UNCOALESCED:
            found.append("uncoalesced")
        elif rule.name == "SharedMemoryConflicts" and rule.optimisation:
            found.append("bank_conflicts")
    return found


def _advice(rules: Sequence[Rule]) -> list[str]:
    told = [rule for rule in rules if rule.optimisation and rule.text]
    ranked = sorted(told, key=lambda rule: (rule.local, -(rule.speedup or 0.0)))
    return [_sentence(rule) for rule in ranked[:ADVICE]]


def _sentence(rule: Rule) -> str:
    of = " of one unit" if rule.local else ""
    gain = f" (estimated gain {rule.speedup:.0f} %{of})" if rule.speedup else ""
    text = rule.text if len(rule.text) <= ADVICE_LENGTH else f"{rule.text[:ADVICE_LENGTH]}..."
    return f"{rule.name}: {text}{gain}"
