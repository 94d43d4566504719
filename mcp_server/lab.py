"""The data flow of compile and benchmark, top to bottom. Knows neither MCP nor a terminal."""

import json
import logging
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from mcp_server import answers, sanitizing
from mcp_server.answers_benchmark import explained, judged
from mcp_server.answers_compile import compiled
from mcp_server.building import built, built_baseline, looked_at
from mcp_server.callers import Caller
from mcp_server.experiment import Experiment
from mcp_server.jobs import Report, Say
from mcp_server.lab_jobs import WAIT_S, stored
from mcp_server.lab_profile import ProfileLab
from mcp_server.schema import BenchmarkAnswer, CompileAnswer
from mcp_server.unjudged import not_compiled, not_judged, not_run
from toolkits.core.advice import advice
from toolkits.core.errors import HarnessError, InvalidInput
from toolkits.core.judge.completeness import accounted
from toolkits.core.judge.request import EvaluationRequest, selection
from toolkits.core.schema import BenchmarkResult, CompileResult, Json, Mode, Solution, Task
from toolkits.core.toolkit import get_toolkit, looking_at

log = logging.getLogger(__name__)


class Lab(ProfileLab):
    """One a server process; what it does lives in the ledger, not here."""

    # --- compile ----------------------------------------------------------------------------------------------------

    async def compile(
        self,
        caller: Caller,
        task: str,
        path: str,
        wait_s: float | None = WAIT_S,
        report: Report | None = None,
        targets: Sequence[str] = (),
    ) -> CompileAnswer:
        """Build a solution, or without a task report on GPU sources; the compiler's answer."""
        request: Json = {"task": task, "path": path, "targets": list(targets)}
        if task:
            wanted = self.workspace.task(task)
            solution = self.workspace.solution(wanted, path, caller.worktree)
            if targets:
                solution = solution.model_copy(update={"targets": list(targets)})
            get_toolkit(solution.toolkit)
            key = (wanted.content_hash, solution.id)
            work = partial(self._built, wanted, solution)
        else:
            sources = self.workspace.loose(path, caller.worktree)
            looking_at(sources)
            key = (json.dumps(sources, sort_keys=True), *targets)
            work = partial(self._looked_at, sources, list(targets))
        job = self.start(caller, "compile", key, request, work)
        return answers.of_kind(CompileAnswer, await self.jobs.wait(job, wait_s, report))

    async def _built(self, task: Task, solution: Solution, job: str, say: Say) -> Json:
        say("compiling", 0)
        build = await built(task, solution, self.workspace.builds)
        return stored(compiled(job, solution.sources, build, self.write_log(job, build)))

    async def _looked_at(self, sources: dict[str, str], targets: list[str], job: str, say: Say) -> Json:
        say("compiling", 0)
        build = await looked_at(sources, targets, self.workspace.builds)
        return stored(compiled(job, sources, build, self.write_log(job, build)))

    # --- benchmark --------------------------------------------------------------------------------------------------

    async def benchmark(
        self,
        caller: Caller,
        task: str,
        path: str,
        mode: Mode = "full",
        baseline: str = "",
        fresh: bool = False,
        wait_s: float | None = WAIT_S,
        report: Report | None = None,
        workloads: Sequence[str] | None = None,
    ) -> BenchmarkAnswer:
        """Judge a solution against a baseline: build both, check, time, record."""
        experiment = self._experiment(caller, task, path, mode, baseline, fresh, workloads)
        request: Json = {"task": task, "path": path, "mode": mode, "baseline": baseline, "fresh": fresh}
        request["workloads"] = experiment.workloads
        work = partial(self._benchmark, caller, experiment)
        job = self.start(caller, "benchmark", experiment.key, request, work)
        return answers.of_kind(BenchmarkAnswer, await self.jobs.wait(job, wait_s, report))

    def _experiment(
        self,
        caller: Caller,
        task: str,
        path: str,
        mode: Mode,
        baseline: str,
        fresh: bool,
        workloads: Sequence[str] | None,
    ) -> Experiment:
        wanted = self.workspace.task(task)
        chosen = _chosen(wanted, mode, workloads)
        solution = self.workspace.solution(wanted, path, caller.worktree)
        name = baseline or wanted.baselines[0]
        against = self.workspace.solution(wanted, name, caller.worktree)
        get_toolkit(solution.toolkit)
        return Experiment(wanted, solution, Path(name).name, against, mode, fresh, path, chosen)

    async def _benchmark(self, caller: Caller, experiment: Experiment, job: str, say: Say) -> Json:
        started = time.monotonic()
        result = explained(await self._result(experiment, job, say), experiment.solution.sources)
        answer = stored(judged(job, result))
        event = experiment.event(self.workspace, result, time.monotonic() - started)
        self.workspace.store(experiment.solution)
        evaluation = self.ledger.record_evaluation(
            job, caller.run, caller.role_id, experiment.solution, result, answer, event
        )
        await self._judging.settled()
        return answer | {"evaluation": evaluation}

    async def _result(self, experiment: Experiment, job: str, say: Say) -> BenchmarkResult:
        """What became of the candidate; the whole of it is in the job's log too."""
        task, solution = experiment.task, experiment.solution
        build = None
        say("compiling", 0)
        try:
            build = await built(task, solution, self.workspace.builds)
            if build.ok and build.artifact is None:
                result = not_run(experiment, build)
            elif build.ok:
                result = await self._judged(experiment, build, say)
            else:
                result = not_compiled(experiment, build)
        except HarnessError as error:
            log.error("the lab failed on %s: %s", experiment.path, error)
            result = not_judged(experiment, error)
        result = accounted(result, experiment.selected(), len(task.workloads))
        result = result.model_copy(update={"advice": advice(solution, result.errors)})
        return result.model_copy(update={"log_path": self.write_log(job, build, result)})

    async def _judged(self, experiment: Experiment, build: CompileResult, say: Say) -> BenchmarkResult:
        if experiment.mode == "sanitize":
            return await sanitizing.sanitized(experiment, self.workspace.builds, say)
        task, solution, name = experiment.task, experiment.solution, experiment.baseline_name
        request = EvaluationRequest(
            task=task,
            candidate=solution,
            candidate_build=build,
            baseline=experiment.baseline,
            baseline_name=name,
            baseline_build=await built_baseline(task, experiment.baseline, name, self.workspace.builds),
            mode="check" if experiment.mode == "check" else "full",
            fresh=experiment.fresh,
            workloads=experiment.workloads,
        )
        return await self._judging.evaluated(request, say)


def _chosen(task: Task, mode: Mode, workloads: Sequence[str] | None) -> tuple[str, ...] | None:
    """The selection in the task's order; naming every workload is no selection."""
    chosen = selection(task, workloads)
    if workloads is not None and mode != "full":
        raise InvalidInput(f"mode {mode!r} times no workload: leave out `workloads`, or use mode 'full'")
    return None if len(chosen) == len(task.workloads) else tuple(workload.uuid for workload in chosen)
