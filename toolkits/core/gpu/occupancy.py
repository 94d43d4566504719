"""How many blocks of a kernel fit on one multiprocessor, and what stops the next. Pure functions of numbers."""

from dataclasses import dataclass

from toolkits.core.gpu.arch import WARP, Architecture

_REGISTERS_AT_ONCE = 256
"""Registers are given to a warp in units of this many."""
_WARPS_AT_ONCE = 4
"""A multiprocessor has four schedulers, each with a quarter of the registers."""
_SHARED_AT_ONCE = 128


@dataclass(frozen=True)
class Occupancy:
    """What fits, of what the hardware holds."""

    blocks: int
    share: float
    """Resident warps of the most possible."""
    limit: str
    """What would have to shrink for one more block; empty where the multiprocessor is full of warps."""


def occupancy(of: Architecture, threads: int, registers: int, shared_bytes: int) -> Occupancy:
    """For blocks of so many threads, each with so many registers, and so much static and dynamic shared memory."""
    warps = -(-threads // WARP)
    shared = _rounded(shared_bytes + of.reserved_shared_bytes, _SHARED_AT_ONCE)
    fit = {
        "threads": of.warps // warps,
        "registers": _warps_by_registers(of, registers) // warps,
        "shared memory": of.shared_bytes // shared if shared else of.blocks,
        "blocks": of.blocks,
    }
    blocks = min(fit.values())
    limit = next(name for name, most in fit.items() if most == blocks)
    share = blocks * warps / of.warps
    return Occupancy(blocks, share, "" if share == 1 else limit)


def registers_of_block(threads: int, registers: int) -> int:
    """Registers that the hardware sets aside for one block."""
    return _rounded(-(-threads // WARP), _WARPS_AT_ONCE) * _rounded(registers * WARP, _REGISTERS_AT_ONCE)


def _warps_by_registers(of: Architecture, registers: int) -> int:
    if not registers:
        return of.warps
    each_scheduler = of.registers // _WARPS_AT_ONCE // _rounded(registers * WARP, _REGISTERS_AT_ONCE)
    return each_scheduler * _WARPS_AT_ONCE


def _rounded(size: int, unit: int) -> int:
    return -(-size // unit) * unit
