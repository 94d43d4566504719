"""What the tools answer: small, flat, self-sufficient. Types only; the supervisor and the agents read these too."""

from typing import Literal

from toolkits.core.schema import Device, HotLine, Interval, Json, Lesson, Record, Status, Tunable, Verdict

JobState = Literal["queued", "running", "done", "failed", "cancelled"]
JobKind = Literal["compile", "benchmark", "profile"]
RoleState = Literal["running", "done", "budget", "time", "stopped", "crashed"]


class TaskLine(Record):
    name: str
    title: str
    op_type: str
    workloads: int
    baselines: list[str]
    start: str
    variants: list[str]


class TaskList(Record):
    tasks: list[TaskLine]


class SolutionLine(Record):
    name: str
    path: str
    """Give this to compile, benchmark and profile, or copy the folder and change it."""
    toolkit: str
    description: str
    tunables: dict[str, Tunable] = {}


class TaskDescription(Record):
    """All that a kernel's author must know."""

    name: str
    title: str
    description: str
    c_signature: str
    """The function that a `cpp` solution defines."""
    python_signature: str
    """The function that a `python` solution defines; outputs are preallocated and passed last."""
    inputs: list[str]
    """One line a tensor: name, dtype, shape, meaning."""
    outputs: list[str]
    checks: list[str]
    distributions: list[str]
    workloads: list[str]
    solutions: list[SolutionLine]
    lessons: list[str]
    """Slugs worth reading first."""


class JobAnswer(Record):
    """Common head of everything that may take long. Not done yet: call get_result with `job`."""

    job: str
    kind: JobKind
    state: JobState
    summary: str
    """The whole answer in a few lines of text."""
    error: str = ""
    """Why the job failed, and what to do; empty otherwise."""


class DiagnosticLine(Record):
    where: str
    """file:line:column"""
    message: str


class CompileAnswer(JobAnswer):
    ok: bool | None = None
    solution: str = ""
    diagnostics: list[DiagnosticLine] = []
    log_path: str = ""
    cached: bool = False
    build_ms: float = 0.0


class WorkloadLine(Record):
    workload: str
    status: Status
    latency_us: float | None = None
    baseline_us: float | None = None
    speedup: float | None = None
    low: float | None = None
    high: float | None = None
    verdict: Verdict | None = None


class BenchmarkAnswer(JobAnswer):
    evaluation: str = ""
    """Id of the permanent record."""
    task: str = ""
    solution: str = ""
    """Content hash."""
    status: Status | None = None
    stage: str = ""
    cause: str = ""
    detail: str = ""
    hint: str = ""
    failed_workload: str = ""
    verdict: Verdict | None = None
    speedup: Interval | None = None
    """Geometric mean against the baseline with its 99 % interval; above 1.0 is faster."""
    worst: float | None = None
    worst_workload: str = ""
    below_one: int = 0
    passed: int = 0
    total: int = 0
    aa_factor: float | None = None
    """Noise: the largest baseline-against-itself ratio of the session."""
    baseline: str = ""
    workloads: list[WorkloadLine] = []
    diagnostics: list[DiagnosticLine] = []
    log_path: str = ""


class ProfileAnswer(JobAnswer):
    tool: str = ""
    target: str = ""
    bottleneck: str = ""
    verdict: str = ""
    instructions: int | None = None
    cycles: int | None = None
    duration_us: float | None = None
    l1_misses: int | None = None
    ll_misses: int | None = None
    branch_misses: int | None = None
    hot_lines: list[HotLine] = []
    notes: list[str] = []
    raw_report: str = ""


class LessonLine(Record):
    slug: str
    title: str
    symptom: str


class LessonsAnswer(Record):
    lessons: list[LessonLine]
    """What matched, best first."""
    text: str
    """Full text of the lesson asked for by slug, or of the best match."""


class LessonAdded(Record):
    lesson: Lesson
    path: str


class HistoryLine(Record):
    seq: int
    at: str
    role: str
    kind: str
    body: Json


class HistoryAnswer(Record):
    run: str
    events: list[HistoryLine]
    next_after: int
    """Pass as `after` to read on; equal to the last `seq` given."""
    more: bool


class RunAnswer(Record):
    run: str
    task: str
    folder: str
    created: bool
    """False: the run existed and is resumed."""
    config: Json
    """Frozen when the run was created."""
    finished: bool
    evaluations: int
    """Evaluations recorded so far."""
    spent_usd: float
    spent_tokens: int


class RoleAnswer(Record):
    role: str
    """Id for wait_role and stop_role."""
    name: str
    agent: str
    state: RoleState
    evaluations: int
    """Evaluations credited to the role by its token."""
    best: Interval | None = None
    """Its best verified speedup."""
    best_evaluation: str = ""
    usd: float = 0.0
    tokens: int = 0
    seconds: float = 0.0
    folder: str = ""
    note: str = ""
    """Why it ended, or what it said last."""


class DevicesAnswer(Record):
    devices: list[Device]
    toolkits: dict[str, str]
    """Toolkit -> empty when usable, else what is missing."""
    profilers: dict[str, str]
