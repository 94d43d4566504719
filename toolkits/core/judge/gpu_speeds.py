"""How fast a device can be at most: bandwidth as measured once, operations from what its units do in a cycle.

A device that this table does not know has no floor of operations. Knows no worker.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from toolkits.core import speeds as kept
from toolkits.core.schema import MemoryLevel, Speeds

FP32_A_CYCLE = 256
"""Operations of one multiprocessor or compute unit: 128 lanes, and a fused multiply-add is two."""
MATRIX_A_CYCLE = {
    "sm_75": 4_096,
    "sm_80": 8_192,
    "sm_86": 4_096,
    "sm_87": 8_192,
    "sm_89": 4_096,
    "sm_90": 16_384,
    "sm_100": 65_536,
    "sm_103": 98_304,
    "sm_110": 65_536,
    "sm_120": 16_384,
    "sm_121": 16_384,
    "gfx90a": 2_048,
    "gfx942": 16_384,
    "gfx950": 65_536,
}
"""The same of the matrix units in their fastest format, with sparsity: no kernel does more."""
LEAST_FACTOR = 1.3
"""Of the clock: boards are sold that run faster than their driver says."""
L2_OVER_MEMORY = 8.0
"""How many times faster than memory the last cache is at most, on all devices of the table."""


@dataclass(frozen=True)
class Figures:
    """What a driver says of a device."""

    name: str
    architecture: str
    multiprocessors: int
    clock_khz: int
    l2_bytes: int


def device_speeds(figures: Figures, copy_gb_s: Callable[[], float], folder: Path | None = None) -> Speeds:
    """The figures of this device, measured at the first need and kept for the user."""
    machine = f"{figures.name}, {figures.architecture}, {figures.multiprocessors} units at {figures.clock_khz} kHz"
    if known := kept.stored(machine, folder):
        return known
    speeds = _speeds(machine, figures, copy_gb_s())
    kept.store(speeds, folder)
    return speeds


def _speeds(machine: str, figures: Figures, copy_gb_s: float) -> Speeds:
    cycles = figures.multiprocessors * figures.clock_khz * 1e3 * LEAST_FACTOR / 1e9
    matrix = MATRIX_A_CYCLE.get(figures.architecture, 1 << 20)
    levels = [MemoryLevel(name="memory", bytes=None, gb_s=round(copy_gb_s, 1))]
    if figures.l2_bytes:
        levels.insert(0, MemoryLevel(name="L2", bytes=figures.l2_bytes, gb_s=round(copy_gb_s * L2_OVER_MEMORY, 1)))
    return Speeds(
        machine=machine,
        levels=levels,
        gflops=round(max(cycles * FP32_A_CYCLE, 1.0), 1),
        fastest_gflops=round(max(cycles * max(matrix, FP32_A_CYCLE), 1.0), 1),
    )
