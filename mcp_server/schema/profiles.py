"""The answer of profile, and the lessons that fit it."""

from mcp_server.schema.jobs import JobAnswer
from toolkits.core.schema import HotLine, Record


class LessonLine(Record):
    slug: str
    title: str
    symptom: str


class KernelLine(Record):
    """One GPU kernel; shares are 0 to 1, what is absent was not measured."""

    name: str
    launches: int
    duration_us: float | None = None
    """Mean of one launch."""
    share: float | None = None
    """Of the time of all kernels."""
    launch: str = ""
    """Blocks and threads."""
    memory_share: float | None = None
    compute_share: float | None = None
    tensor_share: float | None = None
    occupancy: float | None = None
    occupancy_possible: float | None = None
    registers: int | None = None
    stall: str = ""
    verdict: str = ""


class ProfileAnswer(JobAnswer):
    tool: str = ""
    target: str = ""
    device: str = ""
    architecture: str = ""
    bottleneck: str = ""
    verdict: str = ""
    instructions: int | None = None
    cycles: int | None = None
    duration_us: float | None = None
    l1_misses: int | None = None
    ll_misses: int | None = None
    branch_misses: int | None = None
    launches: int | None = None
    """Of GPU kernels."""
    busy_share: float | None = None
    """Part of the time between first and last kernel in which some kernel ran."""
    kernels: list[KernelLine] = []
    """GPU kernels with most time first."""
    more_kernels: int = 0
    """Beyond those listed; report.json beside the raw report has them."""
    changes: list[str] = []
    """Since the report it was compared with."""
    hot_lines: list[HotLine] = []
    advice: list[str] = []
    """What the profiler itself advises on the first kernel."""
    lessons: list[LessonLine] = []
    """Whose symptom this profile has; read_lessons(slug=...) gives the whole."""
    notes: list[str] = []
    raw_report: str = ""
