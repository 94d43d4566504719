"""One candidate to be judged against one baseline: what it is about, and how the history tells of it."""

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mcp_server.workspace import Workspace
from toolkits.core.errors import LabError
from toolkits.core.judge.request import selection
from toolkits.core.schema import BenchmarkResult, Json, Mode, Solution, Task, Workload


@dataclass(frozen=True)
class Experiment:
    task: Task
    solution: Solution
    baseline_name: str
    baseline: Solution
    mode: Mode
    fresh: bool
    path: str
    """As the caller gave it."""
    workloads: tuple[str, ...] | None = None
    """uuids of a selection; None: all of the task."""

    @property
    def against(self) -> str:
        """The baseline, by name and content."""
        return f"{self.baseline_name} {self.baseline.id}"

    def selected(self) -> list[Workload]:
        """The workloads that the result has to account for."""
        return selection(self.task, self.workloads) if self.mode == "full" else []

    @property
    def key(self) -> tuple[str, ...]:
        """The same content is the same work."""
        chosen = json.dumps(self.workloads)
        return (self.task.content_hash, self.solution.id, self.mode, self.baseline.id, str(self.fresh), chosen)

    def event(self, workspace: Workspace, result: BenchmarkResult, seconds: float) -> Json:
        """The history's row about the evaluation; the ledger adds its id."""
        return {
            "task": result.task,
            "solution": result.solution,
            "mode": result.mode,
            "status": result.status,
            "verdict": result.verdict,
            "speedup": result.speedup.model_dump() if result.speedup else None,
            "worst": result.worst,
            "partial": result.partial,
            "cause": result.cause,
            "baseline": result.baseline,
            "fresh": self.fresh,
            "path_name": Path(self.path).name,
            "parameters": self.solution.chosen(),
            "toolkit": self.solution.toolkit,
            "variant": self._variant(workspace),
            "seconds": round(seconds, 3),
        }

    def _variant(self, workspace: Workspace) -> str:
        """The solution of the task that has these sources, whatever values its tunables have; else empty."""
        for name in workspace.solutions(self.task):
            with suppress(LabError):  # a neighbour that does not read is not this candidate's problem
                if workspace.solution(self.task, name).sources == self.solution.sources:
                    return name
        return ""
