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
    description: str = ""

    @model_validator(mode="after")
    def _const_has_value(self) -> "Axis":
        if (self.type == "const") != (self.value is not None):
            raise ValueError("a const axis needs a value, a var axis has none")
        return self


class TensorSpec(Record):
    """An input or output: a dense row-major tensor, or a scalar passed by value when `shape` is null."""

    shape: list[str] | None
    """Axis names, or sums and products of axis names and integers such as `2*tokens-1`; null for a scalar."""
    dtype: DType
    description: str = ""


class Check(Record):
    """One acceptance rule of a task, applied to one output; `parameters` belong to the rule (see judge/compare.py)."""

    output: str
    rule: Literal["allclose", "rel_l2", "worst_row", "window", "argmin", "fib", "fla"]
    tolerance: float
    parameters: dict[str, float | int | str] = {}


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


class Solution(Record):
    """One implementation of a task, identified by the hash of its content."""

    task: str
    toolkit: str
    entry_point: str
    """`file::function`."""
    destination_passing_style: bool = True
    """True: outputs are preallocated and passed last. False (python only): the function returns them."""
    description: str = ""
    flags: list[str] = []
    """Extra compiler flags."""
    tunables: dict[str, Tunable] = {}
    parameters: dict[str, int] = {}
    """Chosen values of the tunables; a tunable that is absent has its default."""
    sources: dict[str, str]
    """Relative path -> text."""

    @property
    def id(self) -> str:
        """Content hash of everything that decides what runs; prose does not count."""
        what = self.model_dump(exclude={"description", "tunables", "parameters"}) | {"chosen": self.chosen()}
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def entry_file(self) -> str:
        return self.entry_point.split("::")[0]

    @property
    def entry_function(self) -> str:
        return self.entry_point.split("::")[1]

    def chosen(self) -> dict[str, int]:
        """The value of every tunable."""
        return {name: tunable.default for name, tunable in self.tunables.items()} | self.parameters

    @model_validator(mode="after")
    def _consistent(self) -> "Solution":
        file, _, function = self.entry_point.partition("::")
        if not function or file not in self.sources:
            raise ValueError(f"entry_point {self.entry_point!r} must be `file::function` with a file of the solution")
        for name, value in self.parameters.items():
            if name not in self.tunables or value not in self.tunables[name].values:
                raise ValueError(f"parameter {name}={value} is not a declared value of a declared tunable")
        return self


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


class Interval(Record):
    """A ratio with its 99 % confidence interval."""

    value: float
    low: float
    high: float


class Measurement(Record):
    """One solution on one workload. Latencies are medians over the timed calls, in microseconds of CPU time."""

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
    speedup: Interval | None = None
    """Baseline latency over candidate latency: above 1.0 the candidate is faster."""
    aa_factor: float | None = None
    """Baseline against a second baseline process in the same session: 1.0 is no noise."""
    verdict: Verdict | None = None
    pairs: int = 0
    """Timed pairs behind the interval."""
    checked: int = 0
    """Timed calls whose output was compared with the reference."""


class BenchmarkResult(Record):
    """One solution of a task, judged: what is recorded, compared and shown to agents."""

    task: str
    solution: str
    mode: Literal["check", "full"]
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
    arithmetic_mean: float | None = None
    worst: float | None = None
    worst_workload: str = ""
    below_one: int = 0
    """Workloads on which the candidate is slower than the baseline."""
    passed: int = 0
    total: int = 0
    """Workloads that passed, of all that were requested."""
    measurements: list[Measurement] = []
    diagnostics: list[Diagnostic] = []
    log_path: str = ""
    clock: str = ""
    """Which clock the latencies come from."""
    regime: str = ""
    """What one timed call includes."""
    host: dict[str, str] = {}
    """Device, governor, load and pinning while timing."""
    kernel_ms: float = 0.0
    """Time in which candidate and baseline kernels ran."""
    overhead_ms: dict[str, float] = {}
    """Everything else the evaluation spent, by part."""


class HotLine(Record):
    """A source line and its share of the profile."""

    file: str
    line: int
    share: float
    """Of all counted instructions, or of the sampled time, 0 to 1."""
    instructions: int | None = None
    source: str = ""


class ProfileReport(Record):
    """What a profiler saw, in one vocabulary. `None` means not measured, never zero."""

    tool: str
    target: str
    """Solution hash, or the command line."""
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
    bottleneck: Literal["memory", "compute", "latency", "branches", "unknown"] = "unknown"
    verdict: str = ""
    """One line: what limits it and the evidence."""
    notes: list[str] = []
    raw_report: str = ""
    """Path of the profiler's own output."""


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
