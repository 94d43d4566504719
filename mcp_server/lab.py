"""The data flow of compile, benchmark and profile, top to bottom. Knows neither MCP nor a terminal."""

import hashlib
import json
import logging
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from mcp_server import answers
from mcp_server.callers import Caller, Callers
from mcp_server.catalogue import Catalogue
from mcp_server.jobs import Jobs, Report, Say, Work
from mcp_server.schema import BenchmarkAnswer, CompileAnswer, JobAnswer, JobKind, ProfileAnswer
from mcp_server.workspace import Workspace
from toolkits.core.device import lease
from toolkits.core.errors import BudgetExhausted, HarnessError, InvalidInput, LabError, NotInWorkspace
from toolkits.core.judge.client import Judge
from toolkits.core.judge.request import EvaluationRequest
from toolkits.core.schema import BenchmarkResult, CompileResult, Json, ProfileReport, Solution, Task, Workload
from toolkits.core.toolkit import get_toolkit

Mode = Literal["check", "full"]
WAIT_S = 45.0
"""Default wait of a call; long work goes on after it."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Experiment:
    """One candidate to be judged against one baseline."""

    task: Task
    solution: Solution
    baseline_name: str
    baseline: Solution
    mode: Mode
    fresh: bool
    path: str
    """As the caller gave it."""

    @property
    def key(self) -> tuple[str, ...]:
        """The same content is the same work."""
        return (self.task.content_hash, self.solution.id, self.mode, self.baseline.id, str(self.fresh))


class Lab(Catalogue):
    """One a server process; what it does lives in the ledger, not here."""

    def __init__(self, workspace: Workspace, callers: Callers, url: str = "") -> None:
        super().__init__(workspace, callers, url)
        self.jobs = Jobs(self.ledger)
        self._judge = Judge()
        self._at_work: dict[str, int] = {}

    async def close(self) -> None:
        """End every role, every job and the judge process."""
        await super().close()
        await self.jobs.close()
        await self._judge.close()

    # --- compile ----------------------------------------------------------------------------------------------------

    async def compile(
        self, caller: Caller, task: str, path: str, wait_s: float | None = WAIT_S, report: Report | None = None
    ) -> CompileAnswer:
        """Build a solution; the compiler's answer."""
        wanted = self.workspace.task(task)
        solution = self.workspace.solution(wanted, path)
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
        experiment = self._experiment(task, path, mode, baseline, fresh)
        self._afford(caller)
        request: Json = {"task": task, "path": path, "mode": mode, "baseline": baseline, "fresh": fresh}
        work = partial(self._benchmark, caller, experiment)
        job = self._start(caller, "benchmark", experiment.key, request, work)
        return answers.of_kind(BenchmarkAnswer, await self.jobs.wait(job, wait_s, report))

    def _experiment(self, task: str, path: str, mode: Mode, baseline: str, fresh: bool) -> Experiment:
        wanted = self.workspace.task(task)
        solution = self.workspace.solution(wanted, path)
        name = baseline or wanted.baselines[0]
        against = self.workspace.solution(wanted, name)
        get_toolkit(solution.toolkit)
        return Experiment(wanted, solution, Path(name).name, against, mode, fresh, path)

    async def _benchmark(self, caller: Caller, experiment: Experiment, job: str, say: Say) -> Json:
        self._at_work[caller.role_id] = self._at_work.get(caller.role_id, 0) + 1
        try:
            return await self._evaluated(caller, experiment, job, say)
        finally:
            self._at_work[caller.role_id] -= 1

    async def _evaluated(self, caller: Caller, experiment: Experiment, job: str, say: Say) -> Json:
        started = time.monotonic()
        say("compiling", 0)
        build = await self._build(experiment.task, experiment.solution)
        result = await self._judged(experiment, build, say)
        result = result.model_copy(update={"log_path": self._write_log(job, build, result)})
        answer = _stored(answers.judged(job, result))
        event = self._event(experiment, result, time.monotonic() - started)
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

    async def _baseline_build(self, experiment: Experiment) -> CompileResult:
        build = await self._build(experiment.task, experiment.baseline)
        if not build.ok:
            raise LabError(
                f"baseline {experiment.baseline_name!r} does not build here, choose another by `baseline`: "
                f"{answers.first_error(build.diagnostics) or answers.clip(build.log, 500)}"
            )
        return build

    def _afford(self, caller: Caller) -> None:
        """A role may not start more evaluations than it was given; those in flight count."""
        role = caller.role
        if role is None or role.evaluations == 0:
            return
        used = self.ledger.count_evaluations(caller.run, role.id) + self._at_work.get(role.id, 0)
        if used >= role.evaluations:
            raise BudgetExhausted(
                f"role {role.name} has used all {role.evaluations} evaluations it was given: "
                "end your turn with what you have learned; results so far are in read_history"
            )

    def _event(self, experiment: Experiment, result: BenchmarkResult, seconds: float) -> Json:
        """The history's row about an evaluation; the ledger adds its id."""
        solution = experiment.solution
        return {
            "task": result.task,
            "solution": result.solution,
            "mode": result.mode,
            "status": result.status,
            "verdict": result.verdict,
            "speedup": result.speedup.model_dump() if result.speedup else None,
            "worst": result.worst,
            "cause": result.cause,
            "baseline": result.baseline,
            "fresh": experiment.fresh,
            "path_name": Path(experiment.path).name,
            "parameters": solution.chosen(),
            "toolkit": solution.toolkit,
            "variant": self._variant(experiment.task, solution),
            "seconds": round(seconds, 3),
        }

    def _variant(self, task: Task, solution: Solution) -> str:
        """The solution of the task that has these sources, whatever values its tunables have; else empty."""
        for name in self.workspace.solutions(task):
            with suppress(LabError):  # a neighbour that does not read is not this candidate's problem
                if self.workspace.solution(task, name).sources == solution.sources:
                    return name
        return ""

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
            work = partial(self._profiled_command, caller, list(command))
            job = self._start(caller, "profile", tuple(command), {"command": list(command)}, work)
        else:
            job = self._profile_solution(caller, task, path, workload)
        return answers.of_kind(ProfileAnswer, await self.jobs.wait(job, wait_s, report))

    def _profile_solution(self, caller: Caller, task: str, path: str, workload: str) -> str:
        wanted = self.workspace.task(task)
        solution = self.workspace.solution(wanted, path)
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

    async def _profiled_command(self, caller: Caller, command: list[str], job: str, say: Say) -> Json:
        from toolkits.core import profiling  # only now: the start of a server does not pay for it

        say("profiling", 0)
        report = await profiling.profile_command(command, Path.cwd(), self.workspace.profile_folder(job))
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
        if caller.role and row.role != caller.role_id:
            raise LabError(f"job {job} belongs to another role: a role cancels only its own jobs")
        return answers.of_job(await self.jobs.cancel(job))

    def _start(self, caller: Caller, kind: JobKind, key: tuple[str, ...], request: Json, work: Work) -> str:
        """The id of the job, new or joined: within a run the same content is one job."""
        digest = hashlib.sha256(json.dumps([kind, caller.run, *key]).encode()).hexdigest()
        return self.jobs.start(kind, digest, caller.run, caller.role_id, request, work)

    def _write_log(self, job: str, build: CompileResult, result: BenchmarkResult | None = None) -> str:
        """The whole compiler output, and the whole result as JSON, for whoever wants more than the answer."""
        path = self.workspace.log_path(job)
        parts = [" ".join(build.command), build.log, result.model_dump_json(indent=1) if result else ""]
        path.write_text("\n".join(part for part in parts if part) + "\n", encoding="utf-8")
        return str(path)


def _stored(answer: JobAnswer) -> Json:
    return answer.model_dump(mode="json")
