"""Dispatches of AMD's profilers as one profile a kernel. Pure; the readers of each file format are elsewhere."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from toolkits.core.profilers import rocprof_counters as counters
from toolkits.core.profilers.kernels import report
from toolkits.core.profilers.roofline import Peaks, amd_peaks, position
from toolkits.core.schema import KernelProfile, ProfileReport

HBM_WRONG = (
    "device memory bytes are left out: the counters' known formulas read 25 to 50 % too low on gfx950, without a sign"
)
HBM_UNKNOWN = (
    "device memory bytes are left out: their formula depends on the architecture, which this file does not name (keep"
    " rocprofv3's agent_info.csv, or rocprof-compute's sysinfo.csv, beside it)"
)
VECTOR_REGISTERS, WAVES_A_SIMD, SIMDS, GRANULE = 512, 8, 4, 8
LDS_BYTES = {"gfx90a": 65536, "gfx942": 65536, "gfx950": 163840}
MEMORY_COUNTERS = ("TCC_EA0_RDREQ_sum", "TCC_EA_RDREQ_sum", "FETCH_SIZE")


@dataclass(frozen=True)
class Dispatch:
    """One launch; sizes in work items, as AMD counts them. None is not in the file."""

    name: str
    start_ns: int | None = None
    end_ns: int | None = None
    grid: tuple[int, int, int] | None = None
    """Work items of the whole grid."""
    block: tuple[int, int, int] | None = None
    lds_bytes: int | None = None
    scratch_bytes: int | None = None
    registers: int | None = None
    accumulation_registers: int | None = None
    scalar_registers: int | None = None
    agent: str = ""
    number: int | None = None
    """Dispatch id, counted from the start of the process."""
    counters: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def duration_us(self) -> float | None:
        """None as well where the clocks were not recorded: zero or reversed."""
        if self.start_ns is None or self.end_ns is None or self.end_ns <= self.start_ns:
            return None
        return (self.end_ns - self.start_ns) / 1e3


def digest(dispatches: Sequence[Dispatch], about: ProfileReport) -> ProfileReport:
    """One profile a kernel, a summary over them, and what is missing."""
    groups: defaultdict[str, list[Dispatch]] = defaultdict(list)
    for dispatch in dispatches:
        groups[dispatch.name].append(dispatch)
    peaks = amd_peaks(about.device)
    kernels = [_kernel(group, about.architecture, peaks) for group in groups.values()]
    counted = any(dispatch.counters for dispatch in dispatches)
    span = None if counted else _span(dispatches)  # counting serialises and repeats launches
    return report(
        kernels,
        about.model_copy(
            update={
                "span_us": span[0] if span else None,
                "busy_share": span[1] if span else None,
                "notes": [*about.notes, *_notes(dispatches, about.architecture)],
            }
        ),
    )


def _kernel(group: Sequence[Dispatch], architecture: str, peaks: Peaks | None) -> KernelProfile:
    times = [time for dispatch in group if (time := dispatch.duration_us) is not None]
    mean = sum(times) / len(times) if times else None
    longest = max(group, key=lambda dispatch: dispatch.duration_us or 0.0)
    counted = _means(group)
    moved = counters.dram_bytes(counted, architecture)
    vector = counters.vector_flops(counted)
    precision = max(vector, key=lambda name: vector[name], default="")
    tensor = counters.tensor_share(counted, peaks, mean)
    possible, limits = _occupancy(longest, architecture)
    rate = moved / mean / 1e3 if moved is not None and mean else None
    return KernelProfile(
        name=longest.name,
        launches=len(group),
        duration_us=mean,
        total_us=sum(times) if times else None,
        grid=_blocks(longest),
        block=longest.block,
        dram_bytes=moved,
        dram_gb_s=rate,
        dram_share=rate / peaks.gb_s if rate is not None and peaks else None,
        memory_share=rate / peaks.gb_s if rate is not None and peaks else None,
        l2_hit_share=counters.ratio(counted, ("TCC_HIT_sum",), ("TCC_HIT_sum", "TCC_MISS_sum")),
        tensor_share=tensor,
        compute_share=counters.vector_share(counted, peaks, mean),
        occupancy_possible=possible,
        occupancy_limits=limits,
        registers=longest.registers,
        accumulation_registers=longest.accumulation_registers,
        scalar_registers=longest.scalar_registers,
        shared_bytes=longest.lds_bytes,
        scratch_bytes=longest.scratch_bytes,
        stalls=counters.stalls(counted),
        active_lanes=counters.active_lanes(counted),
        flops=sum(vector.values()) + counters.matrix_flops(counted) if vector else None,
        # Matrix operations have a roof of their own.
        roofline=position(vector.get(precision), moved, mean, peaks, precision) if not tensor else None,
        counters=counted,
    )


def _blocks(dispatch: Dispatch) -> tuple[int, int, int] | None:
    if not dispatch.grid or not dispatch.block or not all(dispatch.block):
        return None
    x, y, z = (-(-items // size) for items, size in zip(dispatch.grid, dispatch.block, strict=True))
    return x, y, z


def _means(group: Sequence[Dispatch]) -> dict[str, float]:
    """Mean of each counter over the launches that have it: one pass may count only some."""
    held: defaultdict[str, list[float]] = defaultdict(list)
    for dispatch in group:
        for name, value in dispatch.counters.items():
            held[name].append(value)
    return {name: sum(values) / len(values) for name, values in sorted(held.items())}


def _occupancy(dispatch: Dispatch, architecture: str) -> tuple[float | None, list[str]]:
    """Wavefronts that fit on a compute unit of CDNA 2 to 4, by registers and LDS."""
    if architecture not in LDS_BYTES or not dispatch.registers or not dispatch.block:
        return None, []
    held = dispatch.registers + (dispatch.accumulation_registers or 0)
    by_registers = min(WAVES_A_SIMD, VECTOR_REGISTERS // (-(-held // GRANULE) * GRANULE)) * SIMDS
    x, y, z = dispatch.block
    waves = -(-(x * y * z) // counters.LANES)
    fits = {"registers": by_registers // waves * waves}
    if dispatch.lds_bytes:
        fits["LDS"] = LDS_BYTES[architecture] // dispatch.lds_bytes * waves
    most = WAVES_A_SIMD * SIMDS
    least = min(*fits.values(), most)
    return least / most, [what for what, count in fits.items() if count == least and least < most // waves * waves]


def _span(dispatches: Sequence[Dispatch]) -> tuple[float, float] | None:
    """Span in us and busy share of the device with most dispatches."""
    agents: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for dispatch in dispatches:
        if dispatch.duration_us is not None:
            agents[dispatch.agent].append((dispatch.start_ns or 0, dispatch.end_ns or 0))
    if not agents:
        return None
    times = sorted(max(agents.values(), key=len))
    busy, reached = 0, times[0][0]
    for start, end in times:
        busy += max(0, end - max(start, reached))
        reached = max(reached, end)
    span = reached - times[0][0]
    return (span / 1e3, busy / span) if len(times) > 1 else None


def _notes(dispatches: Sequence[Dispatch], architecture: str) -> list[str]:
    counted = any(name in dispatch.counters for dispatch in dispatches for name in MEMORY_COUNTERS)
    hbm = (
        []
        if not counted or architecture in counters.HBM_KNOWN
        else [HBM_WRONG if architecture == "gfx950" else HBM_UNKNOWN]
    )
    untimed = sum(dispatch.start_ns is not None and dispatch.duration_us is None for dispatch in dispatches)
    clocks = [f"{untimed} dispatches have no valid time stamps and count for nothing"] if untimed else []
    return [*_dropped(dispatches), *clocks, *hbm]


def _dropped(dispatches: Sequence[Dispatch]) -> list[str]:
    numbers = {dispatch.number for dispatch in dispatches if dispatch.number is not None}
    if not numbers:
        return []
    missing = max(numbers) - min(numbers) + 1 - len(numbers)
    if not missing:
        return []
    return [
        f"{missing} dispatches are missing: their ids run from {min(numbers)} to {max(numbers)}, and {len(numbers)} are"
        " here; the profiler dropped them, a filter left them out, or the file was cut"
    ]
