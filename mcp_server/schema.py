"""What the tools answer: small, flat, self-sufficient. Types only; the supervisor and the agents read these too."""

from typing import Literal

from toolkits.core.schema import (
    Device,
    HotLine,
    Interval,
    Json,
    Lesson,
    Record,
    SanitizerFinding,
    Status,
    Tunable,
    Verdict,
)

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
    cuda_signature: str = ""
    """The host function of a `cuda` solution: pointers are the device's; in `hip` the stream is a hipStream_t."""
    opencl_signature: str = ""
    """The kernel of an `opencl` solution, whose solution.yaml says `launch: [{kernel: run, global_size: ["64*rows"],
    local_size: ["64"]}]`: expressions over axes and tunables."""
    python_signature: str
    """The function that a `python` solution defines; outputs are preallocated and passed last."""
    plan: str = ""
    """The step that a solution may take before its run, and what is different then; empty: the task has none."""
    c_plan_signatures: list[str] = []
    """The two functions of a `cpp` solution that names a plan_entry_point."""
    python_plan_signatures: list[str] = []
    inputs: list[str]
    """One line a tensor: name, dtype, shape, meaning."""
    outputs: list[str]
    checks: list[str]
    least_work: str = ""
    """What every call must move and compute at least; latencies are compared with what the core needs for it."""
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


class BuiltKernel(Record):
    """What a compiler made of one GPU kernel for one architecture; what is absent it does not tell."""

    name: str
    target: str
    registers: int | None = None
    """Vector registers a thread."""
    more_registers: str = ""
    """AMD's accumulation and scalar registers."""
    spills: str = ""
    """Registers that did not fit: bytes stored and loaded a thread, or their number."""
    stack_bytes: int | None = None
    """Local memory (scratch) a thread."""
    shared_bytes: int | None = None
    """Shared memory (LDS) a block, static and what the launch adds."""
    threads: int | None = None
    """Of the block that the occupancy is for."""
    occupancy: float | None = None
    """Resident warps of what the hardware holds, 0 to 1."""
    occupancy_limit: str = ""
    instructions: str = ""
    """How often each notable kind stands in the machine code."""
    peak: str = ""
    """Most registers alive at once, and where."""
    notes: list[str] = []
    """What stands out, worst first; what was said of an earlier kernel is not repeated."""


class CompileAnswer(JobAnswer):
    ok: bool | None = None
    solution: str = ""
    kernels: list[BuiltKernel] = []
    """GPU kernels, one an architecture each."""
    more_kernels: int = 0
    """Beyond those listed; the log has them."""
    not_timed: str = ""
    """Why this machine checks the build at most and never times it."""
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
    floor_share: float | None = None
    """The physical floor over the latency, 0 to 1: how much of what the device could do was reached."""
    plan_us: float | None = None
    """The plan's part of `latency_us`; absent where the task has no plan step."""
    baseline_plan_us: float | None = None
    run_only: Interval | None = None
    """Speedup of the run alone; `speedup` is of plan and run together."""


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
    run_only: Interval | None = None
    """The same of the runs alone; `speedup` is of plan and run together. Absent where the task has no plan step."""
    worst: float | None = None
    worst_workload: str = ""
    below_one: int = 0
    passed: int = 0
    total: int = 0
    """Workloads that passed, of those asked for."""
    of_task: int = 0
    """Workloads of the whole task: above `total`, only a selection was asked for, and no claim about the task follows.
    """
    aa_factor: float | None = None
    """Noise: the largest baseline-against-itself ratio of the session."""
    warnings: list[str] = []
    """What about the machine makes the latencies doubtful."""
    advice: list[str] = []
    """What in the sources or errors is worth a look; it decides nothing. The rest is in the log."""
    baseline: str = ""
    workloads: list[WorkloadLine] = []
    more_workloads: int = 0
    """Beyond those listed; the log has them."""
    diagnostics: list[DiagnosticLine] = []
    findings: list[SanitizerFinding] = []
    """Of mode "sanitize": the first three; the log has them all."""
    log_path: str = ""


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
