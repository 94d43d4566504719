"""What a kernel experiment is made of. Types only: no I/O, no torch, no MCP.

Field names follow FlashInfer Trace (`axes`, `inputs`, `outputs`, `entry_point`, `destination_passing_style`).
"""

import hashlib
import json
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

DType = Literal["float32", "float64", "float16", "bfloat16", "int32", "int64", "bool"]
Json = dict[str, Any]
Bottleneck = Literal["memory", "compute", "latency", "occupancy", "launch", "host", "branches", "unknown"]
"""What limits a program or a kernel."""


class Record(BaseModel):
    """Base of every type here: immutable, strict about unknown fields, documented by attribute docstrings."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        defer_build=True,  # validators are built at first use: most processes need few of these types
    )


# --- tasks and solutions ------------------------------------------------------------------------------------------


class Axis(Record):
    """A named dimension: constant for the task, or variable and given by each workload."""

    type: Literal["const", "var"]
    value: int | None = None
    """The size of a constant axis."""
    drawn: tuple[int, int] | None = None
    """Least and largest size of this axis in correctness rounds whose sizes the judge draws; null: as in the others."""
    description: str = ""

    @model_validator(mode="after")
    def _const_has_value(self) -> "Axis":
        if (self.type == "const") != (self.value is not None):
            raise ValueError("a const axis needs a value, a var axis has none")
        if self.drawn and (self.type == "const" or not 0 <= self.drawn[0] <= self.drawn[1]):
            raise ValueError("drawn: [least, largest] belongs to a var axis, and the least comes first")
        return self


class TensorSpec(Record):
    """An input or output: a dense row-major tensor, or a scalar passed by value when `shape` is null."""

    shape: list[str] | None
    """Axis names, or sums and products of axis names and integers such as `2*tokens-1`; null for a scalar."""
    dtype: DType
    description: str = ""


class Check(Record):
    """One acceptance rule of a task, applied to one output. All tolerances are scaled by the distribution.

    allclose   |got - want| <= tolerance + rtol * |want|; optional `rtol`, `matched_ratio` (share that must match)
    rel_l2     norm of the error over norm of the expected values; `fla` is the same under the field's name
    worst_row  rel_l2 of the worst row, `window` of the worst window of `size` tokens between `bounds` (an input)
    fib        the smaller of absolute and relative error; optional `matched_ratio`, 0.95 for MoE
    fa         largest error over that of the plain formula in low precision plus rounding; FlashAttention allows 2.
               `low_precision` names the formula's output among what the task's reference() returns
    argmin     cost of the pick over the least cost, less one; `costs` names what reference() returns [.., choices]
    identical  elements that differ in any bit from the expected value rounded to the output's dtype; the tolerance
               is 0. With `across`, the number of an axis: slices along it differ from the first (simulated ranks)

    That two runs on the same content give the same bytes is asked of every task that does not say `repeatable: false`.
    """

    output: str
    rule: Literal["allclose", "rel_l2", "worst_row", "window", "argmin", "fib", "fla", "fa", "identical"]
    tolerance: float = Field(ge=0)
    parameters: dict[str, float | int | str] = {}

    @model_validator(mode="after")
    def _rule_has_its_parameters(self) -> "Check":
        needed, optional = RULE_PARAMETERS[self.rule]
        if missing := needed - set(self.parameters):
            raise ValueError(f"rule {self.rule} needs the parameter {', '.join(sorted(missing))}")
        if unknown := set(self.parameters) - needed - optional:
            known = ", ".join(sorted(needed | optional)) or "none"
            raise ValueError(f"rule {self.rule} has no parameter {', '.join(sorted(unknown))}: it has {known}")
        if not 0.0 < float(self.parameters.get("matched_ratio", 1.0)) <= 1.0:
            raise ValueError("matched_ratio is a share: above 0, at most 1")
        if self.rule == "identical" and self.tolerance:
            raise ValueError("rule identical compares bits: its tolerance is 0, use allclose to allow a difference")
        return self


RULE_PARAMETERS: dict[str, tuple[set[str], set[str]]] = {
    "allclose": (set(), {"rtol", "matched_ratio"}),
    "rel_l2": (set(), set()),
    "worst_row": (set(), set()),
    "window": ({"bounds", "size"}, set()),
    "argmin": ({"costs"}, set()),
    "fib": (set(), {"matched_ratio"}),
    "fla": (set(), set()),
    "fa": ({"low_precision"}, set()),
    "identical": (set(), {"across"}),
}
"""What each rule must be told, and what it may be."""


class Distribution(Record):
    """A named way to draw inputs that exposes a class of bugs."""

    description: str
    tolerance_scale: float = 1.0
    """Every tolerance of the task is multiplied by this under the distribution."""


class Workload(Record):
    """One timed set of axes. `uuid` names it in every result."""

    uuid: str
    axes: dict[str, int]
    distribution: str = ""
    """Empty: the first distribution of the task."""


class Work(Record):
    """The least that one call must do, as expressions over the axes such as `4*rows*cols`: a bound on any algorithm."""

    bytes: str = "0"
    """Bytes that no kernel can leave unmoved: what must be read, once, and what must be written, once."""
    flops: str = "0"
    """Arithmetic operations that no kernel of the kind can leave out; a fused multiply-add counts as two."""


class Plan(Record):
    """What a solution may prepare before the rest of a call's inputs is known, as serving systems do once a batch."""

    inputs: list[str] = Field(min_length=1)
    """Names of the inputs that a plan may read; the others hold nothing of use until it has returned."""
    workspace: str = "0"
    """Bytes that a C++ plan may leave for its run, as an expression over the axes such as `8*rows+64`."""


class Task(Record):
    """A kernel to be written: interface, reference, workloads, acceptance rules and baselines."""

    name: str
    title: str
    op_type: str
    description: str
    """The mathematics, layouts and conventions: all that a kernel's author must know."""
    axes: dict[str, Axis]
    inputs: dict[str, TensorSpec]
    outputs: dict[str, TensorSpec]
    constraints: list[str] = []
    work: Work | None = None
    """What the physical floor of a latency is computed from; without it a task has none."""
    plan: Plan | None = None
    """The step that a solution may take before its run; without it a task has none."""
    checks: list[Check] = Field(min_length=1)
    distributions: dict[str, Distribution] = Field(min_length=1)
    correctness: list[dict[str, int]] = Field(min_length=1)
    """Axes of the correctness rounds; each is run under every distribution."""
    baselines: list[str] = Field(min_length=1)
    """Names under solutions/; the first is what a verdict compares with."""
    start: str
    """The solution that an evolution starts from."""
    variants: list[str] = []
    """Solutions with declared tunables, structurally different from each other."""
    call_timeout_s: float = 10.0
    """Wall limit of one call of a candidate, in seconds."""
    repeatable: bool = True
    """Whether two calls on the same content must give the same bytes; false where atomics may order sums anew."""
    reference_timeout_s: float = Field(default=60.0, gt=0)
    """Wall limit of one call of the task's own code (import, make_inputs, reference, refresh), in seconds."""
    lessons: list[str] = []
    """Slugs of lessons worth reading first."""
    workloads: list[Workload] = Field(min_length=1)
    folder: Path
    """Where task.yaml lies."""
    content_hash: str
    """Of task.yaml, reference.py and workloads.jsonl: the same task is the same hash."""

    def var_axes(self) -> list[str]:
        return [name for name, axis in self.axes.items() if axis.type == "var"]

    def sizes(self, axes: dict[str, int]) -> dict[str, int]:
        """All axis sizes for a workload's `axes`, constants included."""
        return {name: axis.value if axis.value is not None else axes[name] for name, axis in self.axes.items()}


class Tunable(Record):
    """A compile-time parameter (`-DNAME=value`) that a search may vary."""

    values: list[int] = Field(min_length=1)
    default: int
    description: str = ""

    @model_validator(mode="after")
    def _default_is_a_value(self) -> "Tunable":
        if self.default not in self.values:
            raise ValueError(f"default {self.default} is not one of {self.values}")
        return self


class Launch(Record):
    """How one OpenCL kernel is launched. Sizes are expressions over the task's axes and the solution's tunables."""

    kernel: str
    global_size: list[str] = Field(min_length=1, max_length=3)
    """Work items in each dimension, all of them, such as `64*rows`."""
    local_size: list[str] = Field(default=[], max_length=3)
    """Work items of a group in each dimension; empty: OpenCL chooses."""


class Solution(Record):
    """One implementation of a task, identified by the hash of its content."""

    task: str
    toolkit: str
    entry_point: str
    """`file::function`."""
    plan_entry_point: str = ""
    """`file::function` of the plan, for a task that has such a step; empty: run does everything, and its plan is free.
    """
    destination_passing_style: bool = True
    """True: outputs are preallocated and passed last. False (python only): the function returns them."""
    description: str = ""
    flags: list[str] = []
    """Extra compiler flags."""
    targets: list[str] = []
    """GPU architectures to compile for, such as sm_90a or gfx942; empty: the toolkit's own choice."""
    launch: list[Launch] = []
    """Of an opencl solution: its kernels in order; each is passed inputs, outputs and the sizes that vary."""
    tunables: dict[str, Tunable] = {}
    parameters: dict[str, int] = {}
    """Chosen values of the tunables; a tunable that is absent has its default."""
    sources: dict[str, str]
    """Relative path -> text."""

    @property
    def id(self) -> str:
        """Content hash of everything that decides what runs; prose does not count."""
        prose = {"description", "tunables", "parameters"}
        if not self.plan_entry_point:  # ids from before there were plans stay what they are
            prose.add("plan_entry_point")
        prose |= {name for name in ("targets", "launch") if not getattr(self, name)}
        what = self.model_dump(exclude=prose) | {"chosen": self.chosen()}
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def entry_file(self) -> str:
        return self.entry_point.split("::")[0]

    @property
    def entry_function(self) -> str:
        return self.entry_point.split("::")[1]

    @property
    def plan_function(self) -> str:
        """Empty where the solution has no plan."""
        return self.plan_entry_point.partition("::")[2]

    def chosen(self) -> dict[str, int]:
        """The value of every tunable."""
        return {name: tunable.default for name, tunable in self.tunables.items()} | self.parameters

    @model_validator(mode="after")
    def _consistent(self) -> "Solution":
        file, _, function = self.entry_point.partition("::")
        if not function or file not in self.sources:
            raise ValueError(f"entry_point {self.entry_point!r} must be `file::function` with a file of the solution")
        if self.plan_entry_point:
            self._check_plan(function)
        for name, value in self.parameters.items():
            if name not in self.tunables or value not in self.tunables[name].values:
                raise ValueError(f"parameter {name}={value} is not a declared value of a declared tunable")
        return self

    def _check_plan(self, run: str) -> None:
        file, _, function = self.plan_entry_point.partition("::")
        if not function or file not in self.sources:
            raise ValueError(
                f"plan_entry_point {self.plan_entry_point!r} must be `file::function` with a file of the solution"
            )
        if function == run:
            raise ValueError(f"plan_entry_point and entry_point both name {run!r}: plan and run are two functions")


# --- results -------------------------------------------------------------------------------------------------------


class Status(StrEnum):
    """What became of a candidate (FlashInfer Trace, SOL-ExecBench, and the last three our own)."""

    PASSED = "PASSED"
    INCORRECT_SHAPE = "INCORRECT_SHAPE"
    INCORRECT_DTYPE = "INCORRECT_DTYPE"
    INCORRECT_NUMERICAL = "INCORRECT_NUMERICAL"
    RUNTIME_ERROR = "RUNTIME_ERROR"
    COMPILE_ERROR = "COMPILE_ERROR"
    TIMEOUT = "TIMEOUT"
    INVALID_REFERENCE = "INVALID_REFERENCE"
    REWARD_HACK = "REWARD_HACK"
    HARNESS_ERROR = "HARNESS_ERROR"
    SKIPPED = "SKIPPED"
    CANCELLED = "CANCELLED"


class Verdict(StrEnum):
    """The candidate against the baseline; never a claim inside the noise."""

    FASTER = "faster"
    SLOWER = "slower"
    TIE = "tie"
    INCONCLUSIVE = "inconclusive"


class Stage(StrEnum):
    """How far an evaluation came."""

    COMPILE = "compile"
    LOAD = "load"
    CORRECTNESS = "correctness"
    TIMING = "timing"
    RECHECK = "recheck"
    DONE = "done"


class Diagnostic(Record):
    """One message of a compiler."""

    severity: Literal["error", "warning", "note"]
    message: str
    file: str = ""
    line: int | None = None
    column: int | None = None


class KernelReport(Record):
    """What a compiler made of one GPU kernel for one architecture. `None`: the toolchain does not tell, never zero."""

    name: str
    """As written in the source, without mangling."""
    target: str
    """Such as sm_90a or gfx942."""
    registers: int | None = None
    """Vector registers a thread."""
    accumulation_registers: int | None = None
    """AMD's AGPRs a lane."""
    scalar_registers: int | None = None
    """AMD's SGPRs a wavefront."""
    spill_stores_bytes: int | None = None
    spill_loads_bytes: int | None = None
    spilled_registers: int | None = None
    """Where the toolchain counts registers instead of bytes."""
    stack_bytes: int | None = None
    """Private memory a thread (scratch): spills and local arrays."""
    shared_bytes: int | None = None
    """Static shared memory (LDS) a block."""
    dynamic_shared_bytes: int | None = None
    """What the launch adds, where the source or its metadata says it."""
    barriers: int | None = None
    threads: int | None = None
    """Threads of a block that the figures below assume."""
    occupancy: float | None = None
    """Resident warps (wavefronts) of what the hardware holds, 0 to 1."""
    occupancy_limit: str = ""
    """What keeps it there: registers, shared memory, threads, blocks."""
    instructions: dict[str, int] = {}
    """How often each kind of instruction stands in the machine code: HGMMA, FFMA, LDG.128, STL, v_mfma ..."""
    peak_registers: int | None = None
    """Most registers alive at once."""
    peak_line: str = ""
    """`file:line` where that is."""
    notes: list[str] = []
    """What stands out, worst first: spills, narrow loads, a launch that cannot succeed."""


class CompileResult(Record):
    """What building a solution gave."""

    ok: bool
    solution: str
    """Content hash of the solution."""
    toolkit: str
    artifact: Path | None = None
    """The shared library, or the folder of Python sources."""
    command: list[str] = []
    diagnostics: list[Diagnostic] = []
    """Errors first, in the compiler's order; at most 20."""
    log: str = ""
    """Head and tail of the compiler's output."""
    cached: bool = False
    build_ms: float = 0.0
    toolchain: str = ""
    """Name and version of the compiler."""
    loads_as: Literal["native", "python"] = "native"
    """How a worker loads the artifact: a shared library with a C function, or a folder of Python sources."""
    environment: dict[str, str] = {}
    """Variables that a worker sets before it loads the artifact."""
    host: str = ""
    """Python file of the artifact that a worker loads in place of the entry file; empty: the entry file itself."""
    not_timed: str = ""
    """Why this build is checked but never timed: it runs on an emulation, for example; empty: it is timed."""
    kernels: list[KernelReport] = []
    """GPU kernels of the solution, one entry an architecture each."""


class Interval(Record):
    """A ratio with its 99 % confidence interval."""

    value: float
    low: float
    high: float


class Cold(Record):
    """Calls that find inputs and outputs in no cache; microseconds of CPU time by the judge's clock, medians.

    Where the task has a plan step, plan and run together.
    """

    latency_us: float
    baseline_us: float
    speedup: Interval | None = None
    """Baseline over candidate, from eight pairs on."""
    ratio: float
    """Median of baseline over candidate."""
    pairs: int


class Measurement(Record):
    """One solution on one workload. Latencies are medians over the timed calls, in microseconds of CPU time.

    Where the task has a plan step, they and the verdict are of plan and run together: what a production call pays.
    """

    workload: str
    axes: dict[str, int]
    status: Status
    cause: str = ""
    """Stable cause code of a failure, such as `nan_in_output` or `signal_11`."""
    detail: str = ""
    latency_us: float | None = None
    baseline_us: float | None = None
    wall_us: float | None = None
    """The judge's wall clock for the same calls."""
    baseline_wall_us: float | None = None
    floor_us: float | None = None
    """What the task's least work takes, in microseconds, at the best speeds this core has shown."""
    floor_share: float | None = None
    """The floor over the latency, about 0 to 1: how much of what the device could do was reached."""
    speedup: Interval | None = None
    """Baseline latency over candidate latency: above 1.0 the candidate is faster."""
    plan_us: float | None = None
    """The plan's part of `latency_us`; 0 for a solution without a plan, null where the task has no plan step."""
    baseline_plan_us: float | None = None
    run_only: Interval | None = None
    """The baseline's run over the candidate's, plans left out; null where the task has no plan step."""
    aa_factor: float | None = None
    """Baseline against a second baseline process in the same session: 1.0 is no noise."""
    verdict: Verdict | None = None
    pairs: int = 0
    """Timed pairs behind the interval."""
    checked: int = 0
    """Timed calls whose output was compared with the reference, or with the baseline's on the same content."""
    cold: Cold | None = None


class CheckError(Record):
    """How near a candidate came to the tolerance of one check. Errors are in the rule's own measure."""

    output: str
    rule: str
    error: float
    """In the round in which it was the largest share of the tolerance."""
    tolerance: float
    """Of that round: distributions scale it."""
    round: str = ""
    """Distribution and axes, or the workload."""
    beside_baseline: float | None = None
    """The largest error on content that the baseline was checked on too; null: on none."""
    baseline_error: float | None = None
    """The baseline's error on that content."""
    beside_tolerance: float | None = None
    """What the check allowed there."""


Mode = Literal["check", "full", "sanitize"]
"""What a benchmark does: compare values; time too; or look for memory errors, races and undefined behaviour."""


Defect = Literal[
    "out_of_bounds",
    "use_after_free",
    "null_pointer",
    "invalid_access",
    "bad_free",
    "uninitialised",
    "data_race",
    "divergent_barrier",
    "signed_overflow",
    "misaligned",
    "undefined_behaviour",
]


class SanitizerFinding(Record):
    """One defect that a sanitizer saw while the solution ran, in one vocabulary over all of them."""

    tool: Literal["asan", "ubsan", "tsan", "oclgrind", "compute-sanitizer", "emulation"]
    kind: Defect
    file: str = ""
    line: int | None = None
    function: str = ""
    thread: str = ""
    """Thread, or work item and group."""
    access: Literal["", "read", "write"] = ""
    bytes: int | None = None
    address: str = ""
    detail: str = ""
    """The tool's own words; of a race the other access too."""
    frames: list[str] = []
    """Calls that led there, innermost first, at most five."""
    round: str = ""
    """Distribution and sizes under which it was seen first."""


class BenchmarkResult(Record):
    """One solution of a task, judged: what is recorded, compared and shown to agents."""

    task: str
    solution: str
    mode: Mode
    status: Status
    stage: Stage
    baseline: str = ""
    """Name and content hash of the baseline solution."""
    cause: str = ""
    detail: str = ""
    """What was seen, where: bounded, and never the expected tensor."""
    hint: str = ""
    workload: str = ""
    """The workload or correctness round that failed first."""
    rounds: int = 0
    """Correctness rounds passed."""
    verdict: Verdict | None = None
    speedup: Interval | None = None
    """Geometric mean over the workloads; absent unless every workload passed."""
    run_only: Interval | None = None
    """The same of the runs alone; null where the task has no plan step."""
    arithmetic_mean: float | None = None
    worst: float | None = None
    worst_workload: str = ""
    below_one: int = 0
    """Workloads on which the candidate is slower than the baseline."""
    passed: int = 0
    total: int = 0
    """Workloads that passed, of all that were requested."""
    of_task: int = 0
    """Workloads of the whole task: above `total` only a selection was requested, and nothing is said of the rest."""
    cold_ratio: float | None = None
    """Geometric mean over the workloads with empty caches; the verdict is the warm one's."""
    cold_below_one: int = 0
    measurements: list[Measurement] = []
    errors: list[CheckError] = []
    """The largest error of each check, also where it passed; empty unless the candidate was compared."""
    findings: list[SanitizerFinding] = []
    """Of mode `sanitize`: the first three."""
    found: int = 0
    """Of mode `sanitize`: how many there are, each place and kind once."""
    not_timed: str = ""
    """Why a passing candidate has no times although they were asked for; empty: it has, or none were asked for."""
    advice: list[str] = []
    """What in the sources or errors is worth a look, at most ten lines; never the reason of a status."""
    diagnostics: list[Diagnostic] = []
    log_path: str = ""
    clock: str = ""
    """Which clock the latencies come from."""
    regime: str = ""
    """What one timed call includes."""
    host: dict[str, str] = {}
    """The machine during the evaluation: core, frequency, load, who else ran; `not readable` where it is hidden."""
    warnings: list[str] = []
    """What about the machine, or the task's stated work, makes the latencies doubtful."""
    kernel_ms: float = 0.0
    """Time in which candidate and baseline kernels ran."""
    overhead_ms: dict[str, float] = {}
    """Everything else the evaluation spent, by part."""

    @property
    def partial(self) -> bool:
        """Whether only a selection of the task's workloads was requested: no claim about the task follows."""
        return self.total < self.of_task


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


class Device(Record):
    """Something kernels run on."""

    name: str
    kind: Literal["cpu", "cuda", "hip", "opencl"]
    description: str
    cores: int | None = None
    memory_gb: float | None = None
    features: list[str] = []
    busy: bool = False
    """True while an evaluation holds the device's timing lease."""
    speeds: Speeds | None = None
    """Calibrated bandwidth and peak; absent until the first timing of a task that states its work."""


class Lesson(Record):
    """Something learned that outlives a run."""

    slug: str
    """`topic/name`."""
    title: str
    applies_to: dict[str, list[str]] = {}
    """For example {language: [cpp], op: [attention]}."""
    symptom: str
    cause: str
    remedy: str
    evidence: list[str] = []
    """Evaluation ids, addresses, or how it was verified."""
    body: str = ""
