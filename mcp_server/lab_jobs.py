"""Jobs of a lab: started or joined, waited for, cancelled, logged. Knows nothing of what a job does."""

import hashlib
import json

from mcp_server import answers
from mcp_server.callers import Caller, Callers
from mcp_server.catalogue import Catalogue
from mcp_server.jobs import Jobs, Report, Work
from mcp_server.judging import Judging
from mcp_server.schema import JobAnswer, JobKind, RunAnswer
from mcp_server.workspace import Workspace
from toolkits.core.errors import LabError
from toolkits.core.schema import BenchmarkResult, CompileResult, Json

WAIT_S = 45.0
"""Default wait of a call; long work goes on after it."""

FINISH_S = 600.0
"""How long a server without a client goes on with what it was asked for."""


class JobLab(Catalogue):
    """The catalogue, with work that goes on after a call."""

    def __init__(
        self,
        workspace: Workspace,
        callers: Callers,
        url: str = "",
        judging: Judging | None = None,
        keys: dict[str, str] | None = None,
    ) -> None:
        super().__init__(workspace, callers, url, keys)
        self.jobs = Jobs(self.ledger)
        self._judging = judging or Judging()

    async def finish_jobs(self) -> None:
        """For a client that went away in the middle of a call: it, or the next one, will ask for the result."""
        await self.jobs.finish(FINISH_S)

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

    def start(self, caller: Caller, kind: JobKind, key: tuple[str, ...], request: Json, work: Work) -> str:
        """The id of the job, new or joined: within a run the same content is one job."""
        digest = hashlib.sha256(json.dumps([kind, caller.run, *key]).encode()).hexdigest()
        return self.jobs.start(kind, digest, caller.run, caller.role_id, request, work)

    def write_log(self, job: str, build: CompileResult | None, result: BenchmarkResult | None = None) -> str:
        """The whole compiler output, and the whole result as JSON, for whoever wants more than the answer."""
        path = self.workspace.log_path(job)
        kernels = [kernel.model_dump_json(exclude_defaults=True) for kernel in build.kernels] if build else []
        parts = [" ".join(build.command), build.log, *kernels] if build else []
        parts += [result.model_dump_json(indent=1)] if result else []
        path.write_text("\n".join(part for part in parts if part) + "\n", encoding="utf-8")
        return str(path)


def stored(answer: JobAnswer) -> Json:
    """An answer as the ledger keeps it."""
    return answer.model_dump(mode="json")
