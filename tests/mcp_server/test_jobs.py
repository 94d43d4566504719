import asyncio
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from mcp_server.jobs import Jobs, Say, Work
from mcp_server.ledger import JobRow, Ledger, owner_of
from toolkits.core.errors import LabError
from toolkits.core.schema import Json

pytestmark = pytest.mark.anyio

ANSWER: Json = {"what": "an answer"}


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "lab.db")


@pytest.fixture
async def jobs(ledger: Ledger) -> AsyncGenerator[Jobs]:
    jobs = Jobs(ledger)
    yield jobs
    await jobs.close()


class Gate:
    """Work that goes on until it is let go, and counts how often it was begun."""

    def __init__(self) -> None:
        self.begun = 0
        self.open = asyncio.Event()

    async def work(self, job: str, say: Say) -> Json:
        self.begun += 1
        say("behind the gate", 0.5)
        await self.open.wait()
        return ANSWER


def start(jobs: Jobs, work: Work, key: str = "key") -> str:
    return jobs.start("compile", key, "", "", {}, work)


async def test_a_call_returns_after_its_wait_and_the_job_goes_on(jobs: Jobs) -> None:
    gate = Gate()
    job = start(jobs, gate.work)
    assert (await jobs.wait(job, 0)).state in ("queued", "running")
    gate.open.set()
    done = await jobs.wait(job, 30)
    assert (done.state, done.answer) == ("done", ANSWER)


async def test_the_same_content_joins_the_work_in_flight(jobs: Jobs) -> None:
    gate = Gate()
    first, second = start(jobs, gate.work), start(jobs, gate.work)
    other = start(jobs, gate.work, key="other content")
    gate.open.set()
    await asyncio.gather(*(jobs.wait(job, 30) for job in (first, second, other)))
    assert first == second != other
    assert gate.begun == 2


async def test_a_cancelled_call_leaves_its_job_running(jobs: Jobs) -> None:
    gate = Gate()
    job = start(jobs, gate.work)
    call = asyncio.create_task(jobs.wait(job, 30))
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    gate.open.set()
    assert (await jobs.wait(job, 30)).state == "done"


async def test_progress_says_how_long_and_what(jobs: Jobs) -> None:
    gate = Gate()
    heard: list[tuple[float, str]] = []

    async def report(seconds: float, doing: str) -> None:
        heard.append((seconds, doing))
        if doing.startswith("behind"):
            gate.open.set()

    await jobs.wait(start(jobs, gate.work), 30, report)
    assert heard[-1][1] == "behind the gate 50%"
    assert [seconds for seconds, _ in heard] == sorted({seconds for seconds, _ in heard})


async def test_what_the_work_refuses_is_the_error_of_the_job(jobs: Jobs) -> None:
    async def work(job: str, say: Say) -> Json:
        raise LabError("the disk is full: make room")

    done = await jobs.wait(start(jobs, work), 30)
    assert (done.state, done.error) == ("failed", "the disk is full: make room")


async def test_a_bug_fails_the_job_without_its_text_and_the_next_job_works(
    jobs: Jobs, caplog: pytest.LogCaptureFixture
) -> None:
    async def work(job: str, say: Say) -> Json:
        raise ZeroDivisionError("secret")

    done = await jobs.wait(start(jobs, work), 30)
    assert done.state == "failed" and "secret" not in done.error
    gate = Gate()
    gate.open.set()
    assert (await jobs.wait(start(jobs, gate.work), 30)).state == "done"
    assert "secret" in caplog.text


async def test_cancel_ends_the_work_even_before_its_first_step(jobs: Jobs) -> None:
    gate = Gate()
    job = start(jobs, gate.work)
    assert (await jobs.cancel(job)).state == "cancelled"
    assert (await jobs.cancel(job)).state == "cancelled"


async def test_another_server_on_the_same_root_waits_and_cancels(ledger: Ledger, jobs: Jobs) -> None:
    elsewhere = Jobs(Ledger(ledger.path))
    gate, endless = Gate(), Gate()
    job, doomed = start(jobs, gate.work), start(jobs, endless.work, key="endless")
    gate.open.set()
    assert (await elsewhere.wait(job, 30)).answer == ANSWER
    assert (await elsewhere.cancel(doomed)).state == "cancelled"


async def test_closing_tells_whoever_waits_to_ask_again(ledger: Ledger) -> None:
    jobs = Jobs(ledger)
    job = start(jobs, Gate().work)
    await asyncio.sleep(0)
    await jobs.close()
    ended = ledger.job(job)
    assert ended.state == "failed" and "ask again" in ended.error


async def test_the_job_of_a_server_that_was_killed_is_not_joined(ledger: Ledger, jobs: Jobs) -> None:
    server = await asyncio.create_subprocess_exec(sys.executable, "-c", "input()", stdin=asyncio.subprocess.PIPE)
    lost, _ = ledger.open_job("compile", "key", "", "", {}, owner_of(server.pid))
    server.kill()
    await server.wait()
    gate = Gate()
    gate.open.set()
    fresh = start(jobs, gate.work)
    rows: list[JobRow] = [await jobs.wait(job, 30) for job in (lost.id, fresh)]
    assert [row.state for row in rows] == ["failed", "done"]
