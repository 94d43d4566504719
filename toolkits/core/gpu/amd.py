"""What AMD's architectures hold, and what a kernel's assembly means there: occupancy, what stands out, what will fail.

Pure functions of numbers and records. Knows no compiler.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from toolkits.core.errors import InvalidInput
from toolkits.core.gpu.amd_assembly import Instruction, Kernel, instruction_mix
from toolkits.core.gpu.launches import Launch
from toolkits.core.schema import Diagnostic, KernelReport

WAVE = 64
BLOCK_THREADS = 1024
SIMDS = 4
SIMD_WAVES = 8
SIMD_VECTOR_REGISTERS = 512
"""A lane of one SIMD: ordinary and accumulation registers share them."""
_VECTOR_GRANULE = 8
_ACCUMULATION_OFFSET = 4
_MOST_BLOCKS = 16
"""Workgroups of more than one wave that a compute unit holds: it has so many barriers."""
_KB = 1024
_WIDTH = re.compile(r"_load_(?P<width>dwordx\d|dword|[us]?short|[us]?byte)")
_WIDTHS = {"dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16}
_WIDEST = 16
_CROWDED = 96
"""Vector registers from which on the bound of 128 for blocks of 1024 threads is near."""


@dataclass(frozen=True)
class Architecture:
    """One compute unit of an AMD architecture with unified vector registers and waves of 64."""

    name: str
    lds_bytes: int
    """Of a compute unit, and what one workgroup may have."""
    lds_granule: int
    banks: int | None = None
    """Of LDS, 4 bytes wide; None: not stated here."""


AMD = {
    row.name: row
    for row in (
        Architecture("gfx90a", 64 * _KB, 512, 32),
        Architecture("gfx942", 64 * _KB, 512, 32),
        Architecture("gfx950", 160 * _KB, 1280),
    )
}
DEFAULT_TARGETS = ("gfx942", "gfx950")
"""MI300 and MI350."""


def checked_target(target: str) -> str:
    """A target's name, if this table knows it."""
    name = target.strip()
    if name not in AMD:
        raise InvalidInput(f"target {target!r} is not known: choose among {', '.join(AMD)}")
    return name


@dataclass(frozen=True)
class Occupancy:
    """How many waves of a kernel one compute unit holds."""

    waves: int
    """Of all four SIMDs together."""
    limit: str
    """What would have to shrink for more; empty where it is full."""

    @property
    def share(self) -> float:
        return self.waves / (SIMDS * SIMD_WAVES)


def occupancy(of: Architecture, threads: int, registers: int, accumulation: int, scalar: int, lds: int) -> Occupancy:
    """For workgroups of so many threads; registers a lane, scalar registers a wave, LDS bytes a workgroup."""
    waves = -(-threads // WAVE)
    held = _rounded(registers, _ACCUMULATION_OFFSET) + accumulation if accumulation else registers
    by_vectors = min(SIMD_WAVES, SIMD_VECTOR_REGISTERS // _rounded(max(held, 1), _VECTOR_GRANULE)) * SIMDS // waves
    by_scalars = (SIMD_WAVES if scalar <= 100 else SIMD_WAVES - 1) * SIMDS // waves
    fit = {
        "threads": SIMDS * SIMD_WAVES // waves,
        "registers": by_vectors,
        "scalar registers": by_scalars,
        "shared memory": of.lds_bytes // _rounded(lds, of.lds_granule) if lds else SIMDS * SIMD_WAVES,
        "blocks": _MOST_BLOCKS if waves > 1 else SIMDS * SIMD_WAVES,
    }
    blocks = min(fit.values())
    limit = next(name for name, most in fit.items() if most == blocks)
    return Occupancy(blocks * waves, "" if blocks * waves == SIMDS * SIMD_WAVES else limit)


def _rounded(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def report(
    kernel: Kernel, name: str, target: str, threads: int | None = None, dynamic: int | None = None
) -> KernelReport:
    """What a kernel takes and what stands out; without `threads` the largest block it was compiled for is assumed."""
    most, lds = kernel.count("max_flat_workgroup_size"), kernel.count("group_segment_fixed_size")
    assumed = threads or most or BLOCK_THREADS
    accumulation, scalar = kernel.count("agpr_count"), kernel.count("sgpr_count")
    fits = occupancy(AMD[target], assumed, kernel.registers, accumulation, scalar, lds + (dynamic or 0))
    return KernelReport(
        name=name,
        target=target,
        registers=kernel.registers,
        accumulation_registers=accumulation,
        scalar_registers=scalar,
        spilled_registers=kernel.count("vgpr_spill_count") + kernel.count("sgpr_spill_count"),
        stack_bytes=kernel.count("private_segment_fixed_size"),
        shared_bytes=lds,
        dynamic_shared_bytes=dynamic,
        threads=assumed,
        occupancy=fits.share,
        occupancy_limit=fits.limit,
        instructions=instruction_mix(kernel.code),
        notes=[*_spill_notes(kernel), *_narrow_notes(kernel), *_wave_notes(kernel, target, fits, assumed, threads)],
    )


def refused(kernel: Kernel, name: str, target: str, own: Sequence[Launch]) -> list[Diagnostic]:
    """Launches of this kernel that the hardware would refuse, each with its line."""
    return [
        Diagnostic(
            severity="error",
            message=f"launch of {name} would fail: {why} [{target}]",
            file=launch.file,
            line=launch.line,
        )
        for launch in own
        for why in (*_too_many_threads(kernel, launch), *_too_much_lds(kernel, AMD[target], launch))
    ]


def _too_many_threads(kernel: Kernel, launch: Launch) -> list[str]:
    threads, most = launch.threads or 0, kernel.count("max_flat_workgroup_size") or BLOCK_THREADS
    if threads > BLOCK_THREADS:
        return [f"{threads} threads a workgroup, at most {BLOCK_THREADS} are possible"]
    if threads > most:
        return [f"{threads} threads a workgroup, but __launch_bounds__ promised at most {most}"]
    return []


def _too_much_lds(kernel: Kernel, of: Architecture, launch: Launch) -> list[str]:
    static, dynamic = kernel.count("group_segment_fixed_size"), launch.dynamic_shared_bytes or 0
    if static + dynamic <= of.lds_bytes:
        return []
    return [f"{static} bytes of static and {dynamic} of dynamic LDS, a workgroup has at most {of.lds_bytes}"]


def _spill_notes(kernel: Kernel) -> list[str]:
    scratch = kernel.count("private_segment_fixed_size")
    touching = [one for one in kernel.code if one.name.startswith("scratch_") or "offen" in one.name]
    where = _where(touching)
    vectors, scalars = kernel.count("vgpr_spill_count"), kernel.count("sgpr_spill_count")
    notes: list[str] = []
    if vectors:
        notes.append(
            f"{vectors} vector registers are spilled: {scratch} bytes of scratch a lane, {len(touching)} instructions"
            f" on it{where}; shorten live ranges, use smaller tiles, or allow more registers with a smaller"
            " __launch_bounds__"
        )
    elif scratch:
        notes.append(
            f"{scratch} bytes of scratch a lane without spills: an array whose index is not known when compiling, or a"
            f" call that is not inlined; {len(touching)} instructions on it{where}"
        )
    if scalars:
        notes.append(f"{scalars} scalar registers are spilled into vector registers or scratch")
    return notes


def _narrow_notes(kernel: Kernel) -> list[str]:
    """Only where no load of global memory is wide: one wide load shows that the author knows."""
    loads = [(one, _bytes(one.name)) for one in kernel.code if re.match(r"(global|buffer|flat)_load", one.name)]
    widest = max((width for _, width in loads), default=_WIDEST)
    if widest >= _WIDEST // 2:
        return []
    same = [one for one, width in loads if width == widest]
    return [
        f"narrow loads: {len(same)} x {same[0].name}{_where(same)} move {widest} bytes a lane where {_WIDEST} are"
        f" possible; give each lane {_WIDEST // widest} neighbouring elements as one vector"
    ]


def _bytes(name: str) -> int:
    match = _WIDTH.search(name)
    if not match:
        return _WIDEST
    return _WIDTHS.get(match["width"], 2 if "short" in match["width"] else 1)


def _where(instructions: list[Instruction]) -> str:
    places = list(dict.fromkeys(one.place for one in instructions if one.place))
    more = f" and {len(places) - 2} more lines" if len(places) > 2 else ""
    return f" at {', '.join(places[:2])}{more}" if places else ""


def _wave_notes(kernel: Kernel, target: str, fits: Occupancy, threads: int, launched: int | None) -> list[str]:
    """Facts of waves of 64 lanes that matter for this kernel."""
    notes = [f"occupancy: {fits.waves / SIMDS:g} of {SIMD_WAVES} waves a SIMD for workgroups of {threads} threads"]
    if fits.limit:
        notes[0] += f", limited by {fits.limit}"
    crowded = kernel.registers >= _CROWDED or kernel.count("vgpr_spill_count")
    if crowded and kernel.count("max_flat_workgroup_size") == BLOCK_THREADS and (launched or 0) <= BLOCK_THREADS // 2:
        most = SIMD_VECTOR_REGISTERS // (BLOCK_THREADS // WAVE // SIMDS)
        notes.append(
            f"compiled for workgroups of up to {BLOCK_THREADS} threads, so for at most {most} vector registers:"
            " __launch_bounds__ with the threads that are launched allows more"
        )
    if threads % WAVE:
        notes.append(f"wave64: {threads} threads leave {WAVE - threads % WAVE} of the last wave's 64 lanes idle")
    branches = [one for one in kernel.code if one.name.startswith("s_cbranch_exec")]
    if branches:
        notes.append(
            f"wave64: {len(branches)} branches where 64 lanes may take both ways one after the other{_where(branches)}"
        )
    banks = AMD[target].banks
    if banks and any(one.name.startswith(("ds_read", "ds_write", "ds_load", "ds_store")) for one in kernel.code):
        notes.append(
            f"LDS has {banks} banks of 4 bytes: lanes whose addresses lie a multiple of {banks * 4} bytes apart meet in"
            " one bank; pad rows by one element"
        )
    return notes
