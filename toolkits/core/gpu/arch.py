"""What NVIDIA's architectures hold and allow, as a table. Knows no compiler.

From the table of compute capabilities in the CUDA C++ programming guide; a test compares what follows from it with the
calculator that NVIDIA ships (`cuda_occupancy.h`).
"""

import re
from dataclasses import dataclass

from toolkits.core.errors import InvalidInput

WARP = 32
THREAD_REGISTERS = 255
"""Most of a thread, on all of them."""
DEFAULT_TARGETS = ("sm_90a", "sm_100a")
"""Hopper and Blackwell, with the instructions that only they have."""
_TARGET = re.compile(r"sm_(\d+)[af]?")
_KB = 1024


@dataclass(frozen=True)
class Architecture:
    """What one streaming multiprocessor holds, and what one launch may ask for."""

    name: str
    """Without the letter of a target: sm_90 for sm_90a."""
    warps: int
    """Resident at once."""
    blocks: int
    shared_bytes: int
    """Of the multiprocessor."""
    block_shared_bytes: int
    """Of one block, static and dynamic, once the kernel asked for more than 48 KB."""
    reserved_shared_bytes: int
    """Of each block, for the system."""
    clusters: bool = False
    registers: int = 65536
    block_threads: int = 1024
    default_shared_bytes: int = 48 * _KB
    """What a block gets at most unless its kernel's attribute is raised."""

    @property
    def threads(self) -> int:
        return self.warps * WARP


def _row(name: str, warps: int, blocks: int, kb: int, reserved_kb: int = 1, *, clusters: bool = False) -> Architecture:
    return Architecture(name, warps, blocks, kb * _KB, (kb - reserved_kb) * _KB, reserved_kb * _KB, clusters)


_ALL = (
    _row("sm_75", 32, 16, 64, 0),
    _row("sm_80", 64, 32, 164),
    _row("sm_86", 48, 16, 100),
    _row("sm_87", 48, 16, 164),
    _row("sm_89", 48, 24, 100),
    _row("sm_90", 64, 32, 228, clusters=True),
    _row("sm_100", 64, 32, 228, clusters=True),
    _row("sm_103", 64, 32, 228, clusters=True),
    _row("sm_110", 48, 24, 228, clusters=True),
    _row("sm_120", 48, 24, 100, clusters=True),
    _row("sm_121", 48, 24, 100, clusters=True),
)
NVIDIA = {architecture.name: architecture for architecture in _ALL}
PORTABLE_CLUSTER = 8
LARGEST_CLUSTER = 16
"""Blocks of a cluster, where the kernel's attribute allows more than the portable number."""


def checked_target(target: str) -> str:
    """A target's name as compilers spell it; a compute capability such as `9.0a` counts too."""
    spelled = re.sub(r"^(\d+)\.(\d)([af]?)$", r"sm_\1\2\3", target.strip())
    if not _TARGET.fullmatch(spelled):
        raise InvalidInput(
            f"target {target!r} is no NVIDIA architecture: give one such as {', '.join(DEFAULT_TARGETS)}"
        )
    return spelled


def architecture(target: str) -> Architecture | None:
    """The row of a target such as sm_90a; None: this table does not have it."""
    match = _TARGET.fullmatch(target)
    return NVIDIA.get(f"sm_{match[1]}") if match else None
