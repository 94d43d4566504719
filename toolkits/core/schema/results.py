"""What the judge says of a solution."""

from enum import StrEnum
from typing import Literal

from toolkits.core.schema.builds import Diagnostic
from toolkits.core.schema.record import Record


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
    host_us: float | None = None
    """On a device: time in the function on the host, which is what launching takes; hidden while the device works."""
    graph_us: float | None = None
    """On a device: the same call replayed from a graph, by the device's events; null where none can be captured."""
    baseline_graph_us: float | None = None


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
