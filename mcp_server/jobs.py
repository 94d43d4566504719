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
from toolkits.core.errors import HarnessError, LabError
from toolkits.core.judge.postmortem import cause_of, with_remedy
from toolkits.core.schema import Json

MAX_WAIT_S = 50.0
"""No call waits longer: the least patient client gives up after 60 s."""
REPORT_EVERY_S = 2.0
REPORT_GAP_S = 0.25
"""Between two reports at least."""
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
    recorded: bool = False
    """The ledger knows how it ended."""
    moved: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the stage changes and when the job ends."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class Jobs:
    """The jobs that run in this process, and a view of those that run elsewhere on the same root."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._live: dict[str, _Live] = {}
        self._unrecorded: dict[str, str] = {}
        """Jobs whose end the ledger could not be told, and what whoever waits is told instead."""
        self._closing = False

    def start(self, kind: JobKind, key: str, run: str, role: str, request: Json, work: Work) -> str:
        """Start `work`, or join the same work already in flight; gives the job's id."""
        row, joined = self._ledger.open_job(kind, key, run, role, request, this_process())
        if not joined:
            task = asyncio.create_task(self._run(row.id, work), name=row.id)
            self._live[row.id] = _Live(task)
            task.add_done_callback(lambda done: self._ended(row.id, done))
        return row.id

    async def wait(self, job: str, wait_s: float | None, report: Report | None = None) -> JobRow:
        """The job as it stands when it ends, or after `wait_s`; None waits to its end."""
        started = time.monotonic()
        patience = float("inf") if wait_s is None else min(max(wait_s, 0.0), MAX_WAIT_S)
        told, told_at = "", -REPORT_GAP_S
        row = self._seen(job)
        while row.state not in ENDED and (waited := time.monotonic() - started) < patience:
            stage, since = self._stage(job), waited - told_at
            if report and since >= (REPORT_GAP_S if stage != told else REPORT_EVERY_S):
                told, told_at, since = stage, waited, 0.0
                await report(waited, stage)
            # A stage that comes right after another is told with the next: an evaluation of 100 ms has twenty.
            soon = bool(report) and since < REPORT_GAP_S
            await self._pause(job, min(patience - waited, REPORT_GAP_S - since if soon else REPORT_EVERY_S), soon=soon)
            row = row if job in self._live else self._seen(job)
        return row if row.state in ENDED else self._seen(job)

    async def cancel(self, job: str) -> JobRow:
        """Ask whoever runs the job to end it, and wait until it has."""
        row = self._ledger.job(job)
        if row.state in ENDED:
            return row
        self._ledger.request_cancel(job)
        if live := self._live.get(job):
            live.task.cancel()
        return await self.wait(job, MAX_WAIT_S / 5)

    async def finish(self, patience_s: float) -> None:
        """Let what runs here come to its end, as far as the patience goes."""
        if tasks := [live.task for live in self._live.values()]:
            await asyncio.wait(tasks, timeout=patience_s)

    async def close(self) -> None:
        """End what still runs here; whoever waits for it is told to ask again."""
        self._closing = True
        tasks = [live.task for live in self._live.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._closing = False

    def _seen(self, job: str) -> JobRow:
        """The job as the ledger has it, or as it ended here when the ledger cannot be written."""
        row = self._ledger.job(job)
        if row.state in ENDED or job not in self._unrecorded:
            return row
        return row.model_copy(update={"state": "failed", "error": self._unrecorded[job]})

    def _stage(self, job: str) -> str:
        live = self._live.get(job)
        if live is None:
            return "running in another process"
        return f"{live.stage} {live.part:.0%}" if live.part > 0 else live.stage

    async def _pause(self, job: str, seconds: float, *, soon: bool) -> None:
        """Until there may be news of the job; with `soon` only its end is news."""
        if live := self._live.get(job):
            news = live.ended if soon else live.moved
            live.moved.clear()
            # Not asyncio.wait_for: where news come as it is cancelled, Python 3.11's swallows the cancellation.
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await news.wait()
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
        except OSError as problem:
            log.error("job %s: %s", job, problem, exc_info=not cause_of(str(problem)))
            error = f"the lab cannot go on: {with_remedy(str(problem))}"
        except asyncio.CancelledError:
            state, error = ("failed", ORPHANED) if self._closing else ("cancelled", "")
        finally:
            watch.cancel()
            self._finish(job, state, answer, error)

    def _ended(self, job: str, task: asyncio.Task[None]) -> None:
        live = self._live.pop(job)
        if not task.cancelled() and (crash := task.exception()):
            log.error("job %s crashed", job, exc_info=crash)
        if not live.recorded:  # a task that is cancelled before its first step never runs _run
            self._finish(job, "cancelled", None, "")
        live.moved.set()
        live.ended.set()

    def _finish(self, job: str, state: JobState, answer: Json | None, error: str) -> None:
        if live := self._live.get(job):
            live.recorded = True
        try:
            self._ledger.finish_job(job, state, answer, error)
        except HarnessError as problem:
            log.error("job %s ended and could not be recorded: %s", job, problem)
            self._unrecorded.setdefault(job, f"{error or 'its result is lost'}; {problem}".removeprefix(f"{problem}; "))

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
