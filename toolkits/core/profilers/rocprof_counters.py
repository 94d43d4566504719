"""What AMD's hardware counters say of one launch. Pure; a figure is None where a counter that it needs is absent."""

from collections.abc import Iterable, Mapping

from toolkits.core.profilers.roofline import Peaks
from toolkits.core.schema import Stall

LANES = 64
MOPS = 512
"""Operations that one count of SQ_INSTS_VALU_MFMA_MOPS_* stands for."""
HBM_KNOWN = ("gfx90a", "gfx942")
"""Where the formula below gives the bytes of device memory; on gfx950 it reads 25 to 50 % too low."""
VALU = {"fp16": "F16", "fp32": "F32", "fp64": "F64"}
MFMA = {"F16": "mfma16", "BF16": "mfma16", "F32": "mfma32"}


def dram_bytes(counters: Mapping[str, float], architecture: str) -> float | None:
    """Requests of L2 to memory are of 32, 64 or (on gfx942) 128 bytes."""
    if architecture not in HBM_KNOWN:
        return None
    stem = "TCC_EA0" if architecture == "gfx942" else "TCC_EA"
    names = [f"{stem}_{name}_sum" for name in ("RDREQ", "RDREQ_32B", "WRREQ", "WRREQ_64B")]
    if any(name not in counters for name in names):
        fetched, written = counters.get("FETCH_SIZE"), counters.get("WRITE_SIZE")  # derived by the profiler, in KB
        return (fetched + written) * 1024 if fetched is not None and written is not None else None
    reads, reads_32, writes, writes_64 = (counters[name] for name in names)
    if architecture == "gfx942" and "TCC_BUBBLE_sum" not in counters:
        return None
    wide = counters["TCC_BUBBLE_sum"] if architecture == "gfx942" else 0.0
    read = 128 * wide + 64 * (reads - wide - reads_32) + 32 * reads_32
    return read + 64 * writes_64 + 32 * (writes - writes_64)


def vector_flops(counters: Mapping[str, float]) -> dict[str, float]:
    """Vector operations by type; nothing unless all types were counted."""
    vector = {precision: _vector(counters, suffix) for precision, suffix in VALU.items()}
    known = {precision: count for precision, count in vector.items() if count is not None}
    return known if len(known) == len(VALU) else {}


def matrix_flops(counters: Mapping[str, float]) -> float:
    return sum(counters.get(f"SQ_INSTS_VALU_MFMA_MOPS_{kind}", 0.0) for kind in (*MFMA, "F64")) * MOPS


def _vector(counters: Mapping[str, float], suffix: str) -> float | None:
    names = [f"SQ_INSTS_VALU_{op}_{suffix}" for op in ("ADD", "MUL", "FMA")]
    if any(name not in counters for name in names):
        return None
    once, times, fused = (counters[name] for name in names)
    return LANES * (once + times + 2 * fused + counters.get(f"SQ_INSTS_VALU_TRANS_{suffix}", 0.0))


def vector_share(counters: Mapping[str, float], peaks: Peaks | None, mean: float | None) -> float | None:
    found = [(_vector(counters, suffix), precision) for precision, suffix in VALU.items()]
    if not peaks or not mean or any(count is None for count, _ in found):
        return None
    return sum((count or 0.0) / peaks.gflops[precision] for count, precision in found) / mean / 1e3


def tensor_share(counters: Mapping[str, float], peaks: Peaks | None, mean: float | None) -> float | None:
    counted = {kind: counters.get(f"SQ_INSTS_VALU_MFMA_MOPS_{kind}") for kind in MFMA}
    if not peaks or not mean or any(count is None for count in counted.values()):
        return None
    return sum((counted[kind] or 0.0) * MOPS / peaks.gflops[roof] for kind, roof in MFMA.items()) / mean / 1e3


def stalls(counters: Mapping[str, float]) -> list[Stall]:
    reasons = {"SQ_WAIT_ANY": "memory or another dependency", "SQ_WAIT_INST_ANY": "a turn to issue"}
    lived = counters.get("SQ_WAVE_CYCLES")
    found = [
        Stall(reason=reason, share=counters[name] / lived)
        for name, reason in reasons.items()
        if lived and counters.get(name)
    ]
    return sorted(found, key=lambda stall: -stall.share)


def active_lanes(counters: Mapping[str, float]) -> float | None:
    share = ratio(counters, ("SQ_THREAD_CYCLES_VALU",), ("SQ_ACTIVE_INST_VALU",))
    return share / LANES if share is not None else None


def ratio(counters: Mapping[str, float], above: Iterable[str], below: Iterable[str]) -> float | None:
    parts = [[counters.get(name) for name in names] for names in (above, below)]
    if any(value is None for part in parts for value in part):
        return None
    over, under = (sum(value or 0.0 for value in part) for part in parts)
    return over / under if under else None
