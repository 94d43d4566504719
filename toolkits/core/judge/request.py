"""What the server asks of the judge. Types only: imported on both sides, so no torch here."""

from typing import Literal

from toolkits.core.schema import CompileResult, Record, Solution, Task


class EvaluationRequest(Record):
    """One candidate to be judged against one baseline, both already built."""

    task: Task
    candidate: Solution
    candidate_build: CompileResult
    baseline: Solution
    baseline_name: str
    baseline_build: CompileResult
    mode: Literal["check", "full"] = "full"
    fresh: bool = False
    """Draw all inputs anew before this evaluation, as a verification does."""
