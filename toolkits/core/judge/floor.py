"""The least time a core needs for a workload: compulsory bytes over bandwidth, least operations over peak.

Pure functions over numbers: knows no clock, no file and no process.
"""

from dataclasses import dataclass

from toolkits.core.schema import Speeds, Task
from toolkits.core.signature import size_of

MARGIN = 2.0
"""Only a claim of less than the floor over this is a lie: an algorithm may leave out what the task's author thought
necessary, and the core may have been slowed down whenever it was measured."""
NANO = 1e9


@dataclass(frozen=True)
class Floor:
    """What a call of one workload costs at least, and why."""

    bytes: int
    flops: int
    byte_us: float
    """Microseconds to move the bytes, each from the fastest level that still has room for it."""
    flop_us: float
    """Microseconds for the operations, in float32."""
    fastest_flop_us: float
    """The same in the core's fastest float format."""
    gb_s: float
    """The bandwidth that `byte_us` comes to, in 1e9 bytes a second."""
    gflops: float
    """Of the fastest float format."""

    @property
    def us(self) -> float:
        """What a perfect float32 kernel would take."""
        return max(self.byte_us, self.flop_us)

    @property
    def least_us(self) -> float:
        """What no kernel in any format takes, with a margin."""
        return max(self.byte_us, self.fastest_flop_us) / MARGIN

    def evidence(self, claim_us: float) -> str:
        """Why a claim below `least_us` cannot be true."""
        return (
            f"its clock says {claim_us:.3g} us a call, but the task must move {self.bytes} bytes "
            f"({self.byte_us:.3g} us at the {self.gb_s:.4g} GB/s measured here for so many) and needs {self.flops} "
            f"operations ({self.fastest_flop_us:.3g} us at {self.gflops:.4g} GFLOP/s, the core's fastest format): "
            f"nothing runs in less than half of that, {self.least_us:.3g} us"
        )


def floor_of(task: Task, axes: dict[str, int], speeds: Speeds) -> Floor | None:
    """The floor of one workload; None where the task does not state its work."""
    if not task.work:
        return None
    sizes = task.sizes(axes)
    count, flops = size_of(task.work.bytes, sizes), size_of(task.work.flops, sizes)
    seconds = move_s(count, speeds)
    return Floor(
        bytes=count,
        flops=flops,
        byte_us=seconds * 1e6,
        flop_us=flops / speeds.gflops / NANO * 1e6,
        fastest_flop_us=flops / speeds.fastest_gflops / NANO * 1e6,
        gb_s=count / seconds / NANO if count else speeds.levels[0].gb_s,
        gflops=speeds.fastest_gflops,
    )


def move_s(count: int, speeds: Speeds) -> float:
    """Seconds to move `count` bytes: the fastest level is full of them, then the next, and so on.

    No placement of the data beats this, whatever the caches keep of each other.
    """
    seconds = 0.0
    for level in speeds.levels:
        there = count if level.bytes is None else min(count, level.bytes)
        seconds += there / level.gb_s / NANO
        count -= there
    return seconds
