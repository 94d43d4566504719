"""Long work with bounded waits: a job outlives the call that started it, is joined by content, and ends in the ledger.

It knows nothing of kernels: work is any coroutine that gives the answer to keep.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

from mcp_server.ledger import ORPHANED, JobRow, Ledger, this_process
from mcp_server.schema import JobKind, JobState
from toolkits.core.errors import LabError
from toolkits.core.schema import Json

MAX_WAIT_S = 50.0
"""No call waits longer: the least patient client gives up after 60 s."""
REPORT_EVERY_S = 2.0
POLL_S = 0.2
BEAT_EVERY_S = 5.0
ENDED = ("done", "failed", "cancelled")
CRASHED = "the lab itself failed, the candidate is not to blame: the server's log has the traceback; ask again"

Report = Callable[[float, str], Awaitable[None]]
"""Gets the seconds waited so far and what the job does now."""
Say = Callable[[str, float], None]
"""Work tells where it is: a stage, and how far it is through it, 0 to 1."""
Work = Callable[[str, Say], Awaitable[Json]]
"""Gets the job's id; gives the answer that the ledger keeps."""

log = logging.getLogger(__name__)


@dataclass
class _Live:
    task: asyncio.Task[None]
    stage: str = "queued"
    part: float = 0.0
    moved: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the stage changes and when the job ends."""


class Jobs:
    """The jobs that run in this process, and a view of those that run elsewhere on the same root."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._live: dict[str, _Live] = {}
        self._closing = False

    def start(self, kind: JobKind, key: str, run: str, role: str, request: Json, work: Work, cap: int = 0) -> str:
        """Start `work`, or join the same work already in flight; gives the job's id. `cap` is that of `open_job`."""
        row, joined = self._ledger.open_job(kind, key, run, role, request, this_process(), cap)
        if not joined:
            task = asyncio.create_task(self._run(row.id, work), name=row.id)
            self._live[row.id] = _Live(task)
            task.add_done_callback(lambda done: self._ended(row.id, done))
        return row.id

    async def wait(self, job: str, wait_s: float | None, report: Report | None = None) -> JobRow:
        """The job as it stands when it ends, or after `wait_s`; None waits to its end."""
        started = time.monotonic()
        patience = float("inf") if wait_s is None else min(max(wait_s, 0.0), MAX_WAIT_S)
        told, told_at = "", 0.0
        while (row := self._ledger.job(job)).state not in ENDED:
            waited = time.monotonic() - started
            if waited >= patience:
                break
            stage = self._stage(job)
            if report and (stage != told or waited - told_at >= REPORT_EVERY_S):
                told, told_at = stage, waited
                await report(waited, stage)
            await self._pause(job, min(patience - waited, REPORT_EVERY_S))
        return row

    async def cancel(self, job: str) -> JobRow:
        """Ask whoever runs the job to end it, and wait until it has."""
        row = self._ledger.job(job)
        if row.state in ENDED:
            return row
        self._ledger.request_cancel(job)
        if live := self._live.get(job):
            live.task.cancel()
        return await self.wait(job, MAX_WAIT_S / 5)

    async def close(self) -> None:
        """End what still runs here; whoever waits for it is told to ask again."""
        self._closing = True
        tasks = [live.task for live in self._live.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._closing = False

    def _stage(self, job: str) -> str:
        live = self._live.get(job)
        if live is None:
            return "running in another process"
        return f"{live.stage} {live.part:.0%}" if live.part > 0 else live.stage

    async def _pause(self, job: str, seconds: float) -> None:
        """Until there may be news of the job."""
        if live := self._live.get(job):
            live.moved.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(live.moved.wait(), seconds)
        else:
            await asyncio.sleep(min(seconds, POLL_S))

    async def _run(self, job: str, work: Work) -> None:
        state: JobState = "failed"
        answer, error = None, CRASHED
        watch = asyncio.create_task(self._watch(job, asyncio.current_task()))
        try:
            self._ledger.start_job(job)
            answer = await work(job, lambda stage, part: self._note(job, stage, part))
            state, error = "done", ""
        except LabError as problem:
            error = str(problem)
        except asyncio.CancelledError:
            state, error = ("failed", ORPHANED) if self._closing else ("cancelled", "")
        finally:
            watch.cancel()
            self._finish(job, state, answer, error)

    def _ended(self, job: str, task: asyncio.Task[None]) -> None:
        self._live.pop(job).moved.set()
        if not task.cancelled() and (crash := task.exception()):
            log.error("job %s crashed", job, exc_info=crash)
        self._finish(job, "cancelled", None, "")  # a task that is cancelled before its first step never runs _run

    def _finish(self, job: str, state: JobState, answer: Json | None, error: str) -> None:
        self._ledger.finish_job(job, state, answer, error)

    def _note(self, job: str, stage: str, part: float) -> None:
        if live := self._live.get(job):
            if stage != live.stage:
                live.moved.set()
            live.stage, live.part = stage, part

    async def _watch(self, job: str, task: "asyncio.Task[None] | None") -> None:
        """Beats for the job, and ends it when another process asked for that."""
        beaten = time.monotonic()
        while task and not self._ledger.cancel_requested(job):
            await asyncio.sleep(POLL_S * 2)
            if time.monotonic() - beaten >= BEAT_EVERY_S:
                beaten = time.monotonic()
                self._ledger.heartbeat(job)
        if task:
            task.cancel()
