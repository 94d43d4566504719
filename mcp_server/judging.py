"""The judge as the lab uses it: started ahead of time, under the device's lease, asked again when it fails itself."""

import asyncio
import logging
from collections import defaultdict

import anyio

from mcp_server.jobs import Say
from toolkits.core import crashes
from toolkits.core.device import lease
from toolkits.core.errors import HarnessError
from toolkits.core.judge.client import Judge
from toolkits.core.judge.request import EvaluationRequest
from toolkits.core.schema import BenchmarkResult

EXPLANATION_LIMIT_S = 20.0

log = logging.getLogger(__name__)


class Judging:
    """One judge process, warm between evaluations."""

    def __init__(self, judge: Judge | None = None) -> None:
        self._judge = judge or Judge()
        self._warming: asyncio.Task[None] | None = None
        self._closing = False
        self._turns: defaultdict[str, anyio.Lock] = defaultdict(anyio.Lock)
        """Of each device: who asked first is first. The lease itself is for whoever happens to find it free."""

    async def close(self) -> None:
        """End the process, and every worker with it."""
        self.expect_no_more()
        if self._warming:
            self._warming.cancel()
            await asyncio.wait({self._warming})
        await self._judge.close()

    def expect_no_more(self) -> None:
        """Start no judge ahead of time from now on."""
        self._closing = True

    def warm_up(self) -> None:
        """Start the judge in the background: loading torch takes seconds that no evaluation should wait for."""
        if not self._closing and (self._warming is None or self._warming.done()):
            self._warming = asyncio.create_task(self._started(), name="start of the judge")

    async def _started(self) -> None:
        try:
            await self._judge.start()
        except HarnessError as error:
            log.warning("the first evaluation will try again: %s", error)

    async def evaluated(self, request: EvaluationRequest, say: Say) -> BenchmarkResult:
        """The judge's result, before its candidate has `settled`. HarnessError: the lab itself failed twice."""
        device = request.candidate_build.device or "cpu"
        say("waiting for the device", 0)
        async with self._turns[device], lease(device):
            try:
                return await _explained(await self._twice(request, say), request, say)
            except asyncio.CancelledError:
                self.warm_up()  # if the one that was at work had to be killed, whoever comes next wants another
                raise

    async def settled(self) -> None:
        """Wait until nothing of the last candidate is alive."""
        try:
            await self._judge.settled()
        except HarnessError as error:
            log.warning("the result stands, but the end of its candidate was not seen: %s", error)

    async def _twice(self, request: EvaluationRequest, say: Say) -> BenchmarkResult:
        try:
            return await self._judge.result(request, say)
        except HarnessError as error:
            log.warning("judging again after a failure of the lab: %s", error)
        return await self._judge.result(request, say)


async def _explained(result: BenchmarkResult, request: EvaluationRequest, say: Say) -> BenchmarkResult:
    """A candidate that died by a signal dies once more under a debugger, and the detail says where."""
    build = request.candidate_build
    if not result.cause.startswith("signal_") or not build.artifact:
        return result
    say("asking a debugger", 0)
    builds = build.artifact.parent.parent
    try:
        async with asyncio.timeout(EXPLANATION_LIMIT_S):
            why = await crashes.explained(request.task, request.candidate, builds, result.workload)
    except TimeoutError:
        return result
    return result.model_copy(update={"detail": f"{result.detail}\n{why}"}) if why else result
