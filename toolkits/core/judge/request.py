"""What the server asks of the judge. Types only: imported on both sides, so no torch here."""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from toolkits.core.errors import InvalidInput
from toolkits.core.schema import CompileResult, Record, Solution, Task, Workload


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
    workloads: tuple[str, ...] | None = None
    """uuids of the workloads to time; None: all of the task."""

    def selected(self) -> list[Workload]:
        """The workloads to time, in the task's order; none when only correctness is asked for."""
        return selection(self.task, self.workloads) if self.mode == "full" else []


def selection(task: Task, uuids: Sequence[str] | None) -> list[Workload]:
    """The workloads named, in the task's order. What names none, names one twice or names a stranger is refused."""
    if uuids is None:
        return task.workloads
    known = [workload.uuid for workload in task.workloads]
    there_are = f"task {task.name} has {', '.join(known)}"
    if not uuids:
        raise InvalidInput(f"an empty selection of workloads measures nothing: leave it out for all; {there_are}")
    if unknown := [uuid for uuid in uuids if uuid not in known]:
        raise InvalidInput(f"no workload {', '.join(map(repr, unknown))[:200]}: {there_are}")
    if twice := [uuid for uuid, times in Counter(uuids).items() if times > 1]:
        raise InvalidInput(f"workload {', '.join(map(repr, twice))} is named more than once; {there_are}")
    return [workload for workload in task.workloads if workload.uuid in uuids]
