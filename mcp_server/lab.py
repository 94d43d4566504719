"""The data flow of compile, benchmark and profile, top to bottom. Knows neither MCP nor a terminal."""

import hashlib
import json
import logging
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from mcp_server import answers, reports, sanitizing
from mcp_server.building import built, built_baseline, looked_at
from mcp_server.callers import Caller, Callers
from mcp_server.catalogue import Catalogue
from mcp_server.experiment import Experiment
from mcp_server.jobs import Jobs, Report, Say, Work
from mcp_server.judging import Judging
from mcp_server.schema import BenchmarkAnswer, CompileAnswer, JobAnswer, JobKind, ProfileAnswer, RunAnswer
from mcp_server.workspace import Workspace
from toolkits.core.advice import advice
from toolkits.core.errors import HarnessError, InvalidInput, LabError, NotInWorkspace
from toolkits.core.judge.completeness import accounted
from toolkits.core.judge.request import EvaluationRequest, selection
from toolkits.core.schema import BenchmarkResult, CompileResult, Json, Mode, ProfileReport, Solution, Task, Workload
from toolkits.core.toolkit import get_toolkit, looking_at

WAIT_S = 45.0
"""Default wait of a call; long work goes on after it."""

log = logging.getLogger(__name__)


class Lab(Catalogue):
    """One a server process; what it does lives in the ledger, not here."""

    def __init__(self, workspace: Workspace, callers: Callers, url: str = "", judging: Judging | None = None) -> None:
        super().__init__(workspace, callers, url)
        self.jobs = Jobs(self.ledger)
        self._judging = judging or Judging()

    async def close(self) -> None:
        """End every role, every job and the judge process."""
        self._judging.expect_no_more()
        await super().close()
        await self.jobs.close()
        await self._judging.close()

    async def open_run(self, caller: Caller, run: str, task: str, config: str) -> RunAnswer:
        """As the catalogue does; a run will measure, so the judge starts meanwhile."""
        answer = await super().open_run(caller, run, task, config)
        self._judging.warm_up()
        return answer

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
        job = self._start(caller, "compile", key, request, work)
        return answers.of_kind(CompileAnswer, await self.jobs.wait(job, wait_s, report))

    async def _built(self, task: Task, solution: Solution, job: str, say: Say) -> Json:
        say("compiling", 0)
        build = await built(task, solution, self.workspace.builds)
        return _stored(answers.compiled(job, solution.sources, build, self._write_log(job, build)))

    async def _looked_at(self, sources: dict[str, str], targets: list[str], job: str, say: Say) -> Json:
        say("compiling", 0)
        build = await looked_at(sources, targets, self.workspace.builds)
        return _stored(answers.compiled(job, sources, build, self._write_log(job, build)))

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
        cap = caller.role.evaluations if caller.role else 0
        job = self._start(caller, "benchmark", experiment.key, request, work, cap)
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
        result = answers.explained(await self._result(experiment, job, say), experiment.solution.sources)
        answer = _stored(answers.judged(job, result))
        event = experiment.event(self.workspace, result, time.monotonic() - started)
        self.workspace.store(experiment.solution)
        evaluation = self.ledger.record_evaluation(
            job, caller.run, caller.role_id, experiment.solution, result, answer, event
        )
        return answer | {"evaluation": evaluation}

    async def _result(self, experiment: Experiment, job: str, say: Say) -> BenchmarkResult:
        """What became of the candidate; the whole of it is in the job's log too."""
        task, solution, against = experiment.task, experiment.solution, experiment.against
        build = None
        say("compiling", 0)
        try:
            build = await built(task, solution, self.workspace.builds)
            if build.ok and build.artifact is None:
                result = answers.not_run(task, solution, build, experiment.mode, against)
            elif build.ok:
                result = await self._judged(experiment, build, say)
            else:
                result = answers.not_compiled(task, solution, build, experiment.mode, against)
        except HarnessError as error:
            log.error("the lab failed on %s: %s", experiment.path, error)
            result = answers.not_judged(task, solution, experiment.mode, against, error)
        result = accounted(result, experiment.selected(), len(task.workloads))
        result = result.model_copy(update={"advice": advice(solution, result.errors)})
        return result.model_copy(update={"log_path": self._write_log(job, build, result)})

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

    # --- profile ----------------------------------------------------------------------------------------------------

    async def profile(
        self,
        caller: Caller,
        task: str = "",
        path: str = "",
        workload: str = "",
        command: Sequence[str] = (),
        wait_s: float | None = WAIT_S,
        report: Report | None = None,
        against: str = "",
        anywhere: bool = False,
    ) -> ProfileAnswer:
        """Profile a solution on one workload, or any command line; or digest a report that was made elsewhere."""
        handed_in = bool(path and not task)
        if bool(command) == bool(path) or (task and not path):
            raise InvalidInput("give either `task` and `path` of a solution, or a `command`, or the `path` of a report")
        if against and not handed_in:
            raise InvalidInput("`against` compares two reports: give the newer one by `path`, without a task")
        if handed_in:
            job = self._digest(caller, path, against, anywhere)
        elif command:
            folder = caller.worktree or Path.cwd()
            work = partial(self._profiled_command, caller, list(command), folder)
            job = self._start(caller, "profile", (str(folder), *command), {"command": list(command)}, work)
        else:
            job = self._profile_solution(caller, task, path, workload)
        return answers.of_kind(ProfileAnswer, await self.jobs.wait(job, wait_s, report))

    def _profile_solution(self, caller: Caller, task: str, path: str, workload: str) -> str:
        wanted = self.workspace.task(task)
        solution = self.workspace.solution(wanted, path, caller.worktree)
        named = {w.uuid: w for w in wanted.workloads}
        if workload and workload not in named:
            raise NotInWorkspace(f"task {task} has no workload {workload!r}: it has {', '.join(named)}")
        chosen = named[workload] if workload else wanted.workloads[0]
        key = (wanted.content_hash, solution.id, chosen.uuid)
        request: Json = {"task": task, "path": path, "workload": chosen.uuid}
        work = partial(self._profiled_solution, caller, wanted, solution, chosen)
        return self._start(caller, "profile", key, request, work)

    async def _profiled_solution(
        self, caller: Caller, task: Task, solution: Solution, workload: Workload, job: str, say: Say
    ) -> Json:
        from toolkits.core import profiling  # only now: the start of a server does not pay for it

        say("profiling", 0)
        folder = self.workspace.profile_folder(job)
        report = await profiling.profile_solution(task, solution, workload, self.workspace.builds, folder)
        return self._profiled(caller, job, report, {"task": task.name, "workload": workload.uuid})

    async def _profiled_command(self, caller: Caller, command: list[str], folder: Path, job: str, say: Say) -> Json:
        from toolkits.core import profiling  # only now: the start of a server does not pay for it

        say("profiling", 0)
        report = await profiling.profile_command(command, folder, self.workspace.profile_folder(job))
        return self._profiled(caller, job, report, {})

    def _digest(self, caller: Caller, path: str, against: str, anywhere: bool) -> str:
        names = [name for name in (path, against) if name]
        files = [reports.report_path(self.workspace, name, caller.worktree, anywhere=anywhere) for name in names]
        key = [f"{file} {file.stat().st_mtime_ns} {file.stat().st_size}" for file in files]
        work = partial(self._digested, caller, files)
        return self._start(caller, "profile", ("report", *key), {"path": path, "against": against}, work)

    async def _digested(self, caller: Caller, files: list[Path], job: str, say: Say) -> Json:
        say("reading", 0)
        folder = self.workspace.profile_folder(job)
        report = await reports.digested(files[0], files[1] if len(files) > 1 else None, folder)
        return self._profiled(caller, job, report, {})

    def _profiled(self, caller: Caller, job: str, report: ProfileReport, about: Json) -> Json:
        """Keep the report beside the raw one, and tell the history."""
        folder = self.workspace.profile_folder(job)
        (folder / "report.json").write_text(report.model_dump_json(indent=1), encoding="utf-8")
        seen = {"target": report.target, "bottleneck": report.bottleneck, "verdict": report.verdict, "job": job}
        self.ledger.append(caller.run, "profile", about | seen, caller.role_id)
        return _stored(answers.profiled(job, report, reports.fitting_lessons(self.workspace, report)))

    # --- results ----------------------------------------------------------------------------------------------------

    async def get_result(
        self, caller: Caller, id: str, wait_s: float | None = WAIT_S, report: Report | None = None
    ) -> JobAnswer:
        """The answer of a job, waited for, or of a recorded evaluation."""
        self.note_read(caller, id)
        if id.startswith("e"):
            return answers.of_evaluation(self.ledger.evaluation(id))
        return answers.of_job(await self.jobs.wait(id, wait_s, report))

    async def cancel(self, caller: Caller, job: str) -> JobAnswer:
        """End a job, in whichever process it runs."""
        row = self.ledger.job(job)
        if caller.role and (row.role != caller.role_id or row.shared):
            raise LabError(f"job {job} is not yours alone: a role cancels only what nobody else asked for")
        return answers.of_job(await self.jobs.cancel(job))

    def _start(
        self, caller: Caller, kind: JobKind, key: tuple[str, ...], request: Json, work: Work, cap: int = 0
    ) -> str:
        """The id of the job, new or joined: within a run the same content is one job."""
        digest = hashlib.sha256(json.dumps([kind, caller.run, *key]).encode()).hexdigest()
        return self.jobs.start(kind, digest, caller.run, caller.role_id, request, work, cap)

    def _write_log(self, job: str, build: CompileResult | None, result: BenchmarkResult | None = None) -> str:
        """The whole compiler output, and the whole result as JSON, for whoever wants more than the answer."""
        path = self.workspace.log_path(job)
        kernels = [kernel.model_dump_json(exclude_defaults=True) for kernel in build.kernels] if build else []
        parts = [" ".join(build.command), build.log, *kernels] if build else []
        parts += [result.model_dump_json(indent=1)] if result else []
        path.write_text("\n".join(part for part in parts if part) + "\n", encoding="utf-8")
        return str(path)


def _chosen(task: Task, mode: Mode, workloads: Sequence[str] | None) -> tuple[str, ...] | None:
    """The selection in the task's order; naming every workload is no selection."""
    chosen = selection(task, workloads)
    if workloads is not None and mode != "full":
        raise InvalidInput(f"mode {mode!r} times no workload: leave out `workloads`, or use mode 'full'")
    return None if len(chosen) == len(task.workloads) else tuple(workload.uuid for workload in chosen)


def _stored(answer: JobAnswer) -> Json:
    return answer.model_dump(mode="json")
