"""What profilers say of a solution, a program or a GPU kernel."""

from typing import Literal

from toolkits.core.schema.record import Bottleneck, Record


class HotLine(Record):
    """A source line and its share of the profile."""

    file: str
    line: int
    share: float
    """Of all counted instructions, or of the sampled time, 0 to 1."""
    instructions: int | None = None
    source: str = ""


class Stall(Record):
    """Why warps (wavefronts) wait instead of issuing."""

    reason: str
    share: float
    """Of the time that a warp spends between two instructions, 0 to 1."""


class Roofline(Record):
    """Where a kernel lies under the roof of its device."""

    intensity: float
    """Operations a byte of device memory traffic."""
    gflops: float
    """Reached, 1e9 operations a second."""
    roof_gflops: float
    """The least of peak and intensity times bandwidth."""
    share: float
    """Reached over the roof, 0 to 1."""
    bound: Literal["memory", "compute"]
    """Which roof lies above the kernel."""
    precision: str
    """The type of most operations, whose peak was taken."""


class KernelProfile(Record):
    """One GPU kernel over its launches. `None` means not measured; shares are 0 to 1; figures a launch are means."""

    name: str
    launches: int = 1
    duration_us: float | None = None
    """Mean of one launch."""
    total_us: float | None = None
    share: float | None = None
    """Of the time of all kernels in the report."""
    grid: tuple[int, int, int] | None = None
    """Blocks (workgroups) of the longest launch, whatever the vendor counts in."""
    block: tuple[int, int, int] | None = None
    """Threads (work items) of a block."""
    waves: float | None = None
    """How often the grid fills the whole device."""
    memory_share: float | None = None
    """Throughput of the busiest memory unit, of its peak."""
    dram_share: float | None = None
    dram_gb_s: float | None = None
    dram_bytes: float | None = None
    """Bytes that one launch moves between device memory and the last cache."""
    l2_share: float | None = None
    l2_hit_share: float | None = None
    l1_share: float | None = None
    l1_hit_share: float | None = None
    compute_share: float | None = None
    """Throughput of the busiest compute unit, of its peak."""
    tensor_share: float | None = None
    """Tensor cores or MFMA, of their peak."""
    pipes: dict[str, float] = {}
    """Other compute pipes, of their peak each."""
    issue_share: float | None = None
    """Issue slots used."""
    occupancy: float | None = None
    """Warps resident on average, of what the hardware holds."""
    occupancy_possible: float | None = None
    """What registers, shared memory and block size allow."""
    occupancy_limits: list[str] = []
    """What keeps the possible occupancy where it is."""
    registers: int | None = None
    """Vector registers a thread."""
    accumulation_registers: int | None = None
    scalar_registers: int | None = None
    shared_bytes: int | None = None
    """Shared memory (LDS) a block."""
    scratch_bytes: int | None = None
    """Private memory a thread: spills and arrays that registers cannot hold."""
    local_requests: float | None = None
    """Instructions of one launch that read or write local memory."""
    stalls: list[Stall] = []
    """Longest first."""
    active_lanes: float | None = None
    """Lanes of a warp that an instruction uses on average: less than 1 is divergence or predication."""
    uniform_branches: float | None = None
    """Branches at which a whole warp goes the same way."""
    flops: float | None = None
    """Floating-point operations of one launch; a fused multiply-add counts as two."""
    roofline: Roofline | None = None
    counters: dict[str, float] = {}
    """Hardware counters as the profiler names them, mean of a launch."""
    bottleneck: Bottleneck = "unknown"
    verdict: str = ""
    """One line: what limits it and the evidence."""
    symptoms: list[str] = []
    """Stable codes such as `uncoalesced`, which lessons name too."""
    advice: list[str] = []
    """What the profiler itself advises, the largest gain first."""


class Change(Record):
    """One figure of two reports."""

    kernel: str = ""
    """Empty: the whole program."""
    what: str
    before: float | None
    after: float | None
    ratio: float | None = None
    """After over before."""


class ProfileReport(Record):
    """What a profiler saw, in one vocabulary. `None` means not measured, never zero."""

    tool: str
    target: str
    """Solution hash, the command line, or the file that was digested."""
    device: str = ""
    architecture: str = ""
    """Such as sm_90 or gfx942; empty: the report does not say."""
    kernels: list[KernelProfile] = []
    """GPU kernels, those that took most time first."""
    launches: int | None = None
    """Kernel launches in the report."""
    span_us: float | None = None
    """From the start of the first kernel to the end of the last."""
    busy_share: float | None = None
    """Part of the span in which some kernel ran."""
    symptoms: list[str] = []
    """Stable codes, which lessons name too."""
    command: list[str] = []
    instructions: int | None = None
    cycles: int | None = None
    duration_us: float | None = None
    data_reads: int | None = None
    data_writes: int | None = None
    l1_misses: int | None = None
    """Simulated or counted first-level data misses."""
    ll_misses: int | None = None
    """Last-level data misses."""
    branches: int | None = None
    branch_misses: int | None = None
    flops: int | None = None
    hot_lines: list[HotLine] = []
    changes: list[Change] = []
    """Since the report that this one was compared with."""
    bottleneck: Bottleneck = "unknown"
    verdict: str = ""
    """One line: what limits it and the evidence."""
    notes: list[str] = []
    raw_report: str = ""
    """Path of the profiler's own output."""
