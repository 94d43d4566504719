"""The answer of benchmark."""

from mcp_server.schema.jobs import DiagnosticLine, JobAnswer
from toolkits.core.schema import Interval, Record, SanitizerFinding, Status, Verdict


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
