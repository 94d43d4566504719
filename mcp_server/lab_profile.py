"""The data flow of profile, top to bottom: a solution, a command line, or a report made elsewhere."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from mcp_server import answers, reports
from mcp_server.answers_profile import profiled
from mcp_server.callers import Caller
from mcp_server.jobs import Report, Say
from mcp_server.lab_jobs import WAIT_S, JobLab, stored
from mcp_server.schema import ProfileAnswer
from toolkits.core.errors import InvalidInput, NotInWorkspace
from toolkits.core.schema import Json, ProfileReport, Solution, Task, Workload


class ProfileLab(JobLab):
    """Finds what limits a kernel."""

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
            job = self.start(caller, "profile", (str(folder), *command), {"command": list(command)}, work)
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
        return self.start(caller, "profile", key, request, work)

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
        return self.start(caller, "profile", ("report", *key), {"path": path, "against": against}, work)

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
        return stored(profiled(job, report, reports.fitting_lessons(self.workspace, report)))
