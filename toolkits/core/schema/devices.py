"""What kernels run on, and how fast it is."""

from typing import Literal

from pydantic import Field

from toolkits.core.schema.record import Record


class MemoryLevel(Record):
    """A cache, or the main memory."""

    name: str
    bytes: int | None
    """What it holds; null for main memory."""
    gb_s: float = Field(gt=0)
    """Bytes that one core reads and writes there at most, in 1e9 bytes a second."""


class Speeds(Record):
    """What one core can do at most: the highest figures ever measured here, in CPU time."""

    machine: str
    """CPU model, number of cores and kernel that the figures belong to."""
    levels: list[MemoryLevel] = Field(min_length=1)
    """Fastest and smallest first; the last is main memory."""
    gflops: float = Field(gt=0)
    """Operations on float32, 1e9 a second; a fused multiply-add is two."""
    fastest_gflops: float = Field(gt=0)
    """The same in the fastest float format that the core multiplies, such as bfloat16."""


class GpuUser(Record):
    """A process that holds memory of a GPU."""

    pid: int
    name: str = ""
    """Empty: of a namespace that is not seen from here."""
    memory_gb: float | None = None


class GpuState(Record):
    """What the driver says of a GPU now. `None`: it does not say."""

    uuid: str = ""
    clock_mhz: float | None = None
    clock_max_mhz: float | None = None
    memory_clock_mhz: float | None = None
    memory_clock_max_mhz: float | None = None
    throttled: list[str] = []
    """Why the clocks are below what they could be; idleness is no reason."""
    temperature_c: float | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    memory_used_gb: float | None = None
    users: list[GpuUser] = []
    """Who else is on it."""


class Device(Record):
    """Something kernels run on."""

    name: str
    kind: Literal["cpu", "cuda", "hip", "opencl"]
    description: str
    architecture: str = ""
    """Such as sm_90 or gfx942."""
    cores: int | None = None
    memory_gb: float | None = None
    features: list[str] = []
    busy: bool = False
    """True while an evaluation holds the device's timing lease."""
    speeds: Speeds | None = None
    """Calibrated bandwidth and peak; absent until the first timing of a task that states its work."""
    gpu: GpuState | None = None
    problem: str = ""
    """What the driver refuses to tell or do, and the remedy; empty: nothing."""
