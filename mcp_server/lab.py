"""The data flow of compile, benchmark and profile, top to bottom. Knows neither MCP nor a terminal."""

import asyncio
import hashlib
import json
import logging
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import anyio

from mcp_server import answers
from mcp_server.callers import Caller, Callers
from mcp_server.catalogue import Catalogue
from mcp_server.experiment import Experiment, Mode
from mcp_server.jobs import Jobs, Report, Say, Work
from mcp_server.schema import BenchmarkAnswer, CompileAnswer, JobAnswer, JobKind, ProfileAnswer, RunAnswer
from mcp_server.workspace import Workspace
from toolkits.core.device import lease
from toolkits.core.errors import HarnessError, InvalidInput, LabError, NotInWorkspace
from toolkits.core.judge.client import Judge
from toolkits.core.judge.request import EvaluationRequest
from toolkits.core.schema import BenchmarkResult, CompileResult, Json, ProfileReport, Solution, Task, Workload
from toolkits.core.toolkit import get_toolkit

WAIT_S = 45.0
"""Default wait of a call; long work goes on after it."""

log = logging.getLogger(__name__)


class Lab(Catalogue):
    """One a server process; what it does lives in the ledger, not here."""

    def __init__(self, workspace: Workspace, callers: Callers, url: str = "") -> None:
        super().__init__(workspace, callers, url)
        self.jobs = Jobs(self.ledger)
        self._judge = Judge()
        self._warming: asyncio.Task[None] | None = None
        self._closing = False

    async def close(self) -> None:
        """End every role, every job and the judge process."""
        self._closing = True
        await super().close()
        await self.jobs.close()
        if self._warming:
            self._warming.cancel()
            await asyncio.wait({self._warming})
        await self._judge.close()

    async def open_run(self, caller: Caller, run: str, task: str, config: str) -> RunAnswer:
        """As the catalogue does; a run will measure, so the judge starts meanwhile."""
        answer = await super().open_run(caller, run, task, config)
        self._warm_judge()
        return answer

    def _warm_judge(self) -> None:
        """Start the judge in the background: loading torch takes seconds that no evaluation should wait for."""
        if not self._closing and (self._warming is None or self._warming.done()):
            self._warming = asyncio.create_task(self._started_judge(), name="start of the judge")

    async def _started_judge(self) -> None:
        try:
            await self._judge.start()
        except (LabError, OSError, TimeoutError, anyio.EndOfStream, anyio.IncompleteRead) as error:
            log.warning("the judge did not start, the first evaluation will try again: %r", error)

    # --- compile ----------------------------------------------------------------------------------------------------

    async def compile(
        self, caller: Caller, task: str, path: str, wait_s: float | None = WAIT_S, report: Report | None = None
    ) -> CompileAnswer:
        """Build a solution; the compiler's answer."""
        wanted = self.workspace.task(task)
        solution = self.workspace.solution(wanted, path, caller.worktree)
        get_toolkit(solution.toolkit)
        key = (wanted.content_hash, solution.id)
        job = self._start(caller, "compile", key, {"task": task, "path": path}, partial(self._built, wanted, solution))
        return answers.of_kind(CompileAnswer, await self.jobs.wait(job, wait_s, report))

    async def _built(self, task: Task, solution: Solution, job: str, say: Say) -> Json:
        say("compiling", 0)
        build = await self._build(task, solution)
        return _stored(answers.compiled(job, build, self._write_log(job, build)))

    async def _build(self, task: Task, solution: Solution) -> CompileResult:
        return await get_toolkit(solution.toolkit).compile(task, solution, self.workspace.builds)

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
    ) -> BenchmarkAnswer:
        """Judge a solution against a baseline: build both, check, time, record."""
        experiment = self._experiment(caller, task, path, mode, baseline, fresh)
        request: Json = {"task": task, "path": path, "mode": mode, "baseline": baseline, "fresh": fresh}
        work = partial(self._benchmark, caller, experiment)
        cap = caller.role.evaluations if caller.role else 0
        job = self._start(caller, "benchmark", experiment.key, request, work, cap)
        return answers.of_kind(BenchmarkAnswer, await self.jobs.wait(job, wait_s, report))

    def _experiment(self, caller: Caller, task: str, path: str, mode: Mode, baseline: str, fresh: bool) -> Experiment:
        wanted = self.workspace.task(task)
        solution = self.workspace.solution(wanted, path, caller.worktree)
        name = baseline or wanted.baselines[0]
        against = self.workspace.solution(wanted, name, caller.worktree)
        get_toolkit(solution.toolkit)
        return Experiment(wanted, solution, Path(name).name, against, mode, fresh, path)

    async def _benchmark(self, caller: Caller, experiment: Experiment, job: str, say: Say) -> Json:
        started = time.monotonic()
        say("compiling", 0)
        build = await self._build(experiment.task, experiment.solution)
        result = await self._judged(experiment, build, say)
        result = result.model_copy(update={"log_path": self._write_log(job, build, result)})
        answer = _stored(answers.judged(job, result))
        event = experiment.event(self.workspace, result, time.monotonic() - started)
        self.workspace.store(experiment.solution)
        evaluation = self.ledger.record_evaluation(
            job, caller.run, caller.role_id, experiment.solution, result, answer, event
        )
        return answer | {"evaluation": evaluation}

    async def _judged(self, experiment: Experiment, build: CompileResult, say: Say) -> BenchmarkResult:
        task, solution, name = experiment.task, experiment.solution, experiment.baseline_name
        if not build.ok:
            return answers.not_compiled(task, solution, build, experiment.mode, f"{name} {experiment.baseline.id}")
        request = EvaluationRequest(
            task=task,
            candidate=solution,
            candidate_build=build,
            baseline=experiment.baseline,
            baseline_name=name,
            baseline_build=await self._baseline_build(experiment),
            mode=experiment.mode,
            fresh=experiment.fresh,
        )
        say("waiting for the device", 0)
        async with lease("cpu"):
            try:
                return await self._judge.evaluate(request, say)
            except HarnessError as error:
                log.warning("judging again after a failure of the lab: %s", error)
                return await self._judge.evaluate(request, say)
            except asyncio.CancelledError:
                self._warm_judge()  # the one that was at work is killed, and whoever comes next wants another
                raise

    async def _baseline_build(self, experiment: Experiment) -> CompileResult:
        build = await self._build(experiment.task, experiment.baseline)
        if not build.ok:
            raise LabError(
                f"baseline {experiment.baseline_name!r} does not build here, choose another by `baseline`: "
                f"{answers.first_error(build.diagnostics) or answers.clip(build.log, 500)}"
            )
        return build

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
    ) -> ProfileAnswer:
        """Profile a solution on one workload, or any command line."""
        if bool(command) == bool(task and path):
            raise InvalidInput("give either `task` and `path` of a solution, or a `command`")
        if command:
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

    def _profiled(self, caller: Caller, job: str, report: ProfileReport, about: Json) -> Json:
        """Keep the report beside the raw one, and tell the history."""
        folder = self.workspace.profile_folder(job)
        (folder / "report.json").write_text(report.model_dump_json(indent=1), encoding="utf-8")
        seen = {"target": report.target, "bottleneck": report.bottleneck, "verdict": report.verdict, "job": job}
        self.ledger.append(caller.run, "profile", about | seen, caller.role_id)
        return _stored(answers.profiled(job, report))

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

    def _write_log(self, job: str, build: CompileResult, result: BenchmarkResult | None = None) -> str:
        """The whole compiler output, and the whole result as JSON, for whoever wants more than the answer."""
        path = self.workspace.log_path(job)
        parts = [" ".join(build.command), build.log, result.model_dump_json(indent=1) if result else ""]
        path.write_text("\n".join(part for part in parts if part) + "\n", encoding="utf-8")
        return str(path)


def _stored(answer: JobAnswer) -> Json:
    return answer.model_dump(mode="json")
