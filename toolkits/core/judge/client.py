"""The server's handle on its judge process: started at the first evaluation, warm afterwards. Imports no torch.

Whatever becomes of that process is one clear error here: it may die, hang, be killed, or never start.
"""

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import anyio
import anyio.abc
from anyio.streams.buffered import BufferedByteReceiveStream

from toolkits.core.causes import Cause
from toolkits.core.errors import HarnessError
from toolkits.core.judge.completeness import accounted
from toolkits.core.judge.postmortem import Death
from toolkits.core.judge.request import EvaluationRequest
from toolkits.core.process import started_process
from toolkits.core.schema import BenchmarkResult, Json, Stage, Status

LINE_BYTES = 8_000_000
LAST_WORDS_BYTES = 32_000
"""Of its standard error: a hundred frames of a reference that hangs, and our own traceback."""
CHATTER_BYTES = 1_000_000
EXIT_PATIENCE_S = 2.0
"""For the exit status of a process that has closed its output."""
SLOW_CALLS = 40
"""Calls at the task's own limit that a judge may make between two signs of life."""
LAST = {"settled", "cancelled", "harness_error"}
"""What the last message about an evaluation says; a result comes before it."""
KILLED = "signal_9"
_GONE = (OSError, anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError, anyio.ClosedResourceError)

Progress = Callable[[str, float], None]


class EvaluationCancelled(Exception):
    """The evaluation was ended on request."""


@dataclass(frozen=True)
class Patience:
    """How long the server waits for its judge, in seconds."""

    start_s: float = 120.0
    silence_s: float = 180.0
    """Between two signs of life, beside the calls that a task allows to be slow and its reference."""
    cancel_s: float = 3.0
    """For an evaluation that was asked to end; then the process is killed."""

    def between_signs(self, request: EvaluationRequest) -> float:
        task = request.task
        return self.silence_s + SLOW_CALLS * task.call_timeout_s + task.reference_timeout_s


class Judge:
    """One judge process; evaluations queue behind each other."""

    def __init__(self, python: str = sys.executable, patience: Patience = Patience()) -> None:
        self._python = python
        self._patience = patience
        self._stack = AsyncExitStack()
        self._process: anyio.abc.Process | None = None
        self._lines: BufferedByteReceiveStream | None = None
        self._turn = anyio.Lock()
        self._stderr: IO[bytes] | None = None
        self._doing = ""
        self._ending = False

    @property
    def pid(self) -> int | None:
        """Of the process, while there is one."""
        return self._process.pid if self._process else None

    async def start(self) -> None:
        """Start the process now, so that the first evaluation does not pay for it. HarnessError: it cannot."""
        async with self._turn:
            await self._started()

    async def evaluate(self, request: EvaluationRequest, on_progress: Progress) -> BenchmarkResult:
        """Judge one candidate, of which nothing is alive then.

        HarnessError: the judge itself failed; the next call starts a new one.
        """
        result = await self.result(request, on_progress)
        await self.settled()
        return result

    async def result(self, request: EvaluationRequest, on_progress: Progress) -> BenchmarkResult:
        """The same as soon as it is known: the candidate may be alive until `settled`."""
        async with self._turn:
            result = await self._evaluated(request, on_progress)
            if result.cause == KILLED:  # by itself, or by someone else: then it lives when asked again
                result = await self._evaluated(request, on_progress)
        return accounted(result, request.selected(), len(request.task.workloads))

    async def settled(self) -> None:
        """Wait until nothing of the last candidate is alive. HarnessError: that cannot be said."""
        async with self._turn:
            await self._settled()

    async def cancel(self) -> None:
        """Ask the evaluation in progress to end; it raises EvaluationCancelled where it is awaited."""
        if self._process:
            await self._send(json.dumps({"cancel": True}))

    async def close(self) -> None:
        """End the process and every worker of it."""
        await self._end()

    # --- one evaluation ---------------------------------------------------------------------------------------------

    async def _settled(self) -> None:
        if not self._ending:
            return
        try:
            with anyio.fail_after(self._patience.silence_s):
                message = await self._message()
        except (*_GONE, TimeoutError) as error:
            raise (await self._death(hung=isinstance(error, TimeoutError))).error() from error
        self._ending = False
        if "harness_error" in message:
            raise HarnessError(message["harness_error"], message["cause"])

    async def _evaluated(self, request: EvaluationRequest, on_progress: Progress) -> BenchmarkResult:
        with suppress(HarnessError):  # told to whoever asked for that candidate
            await self._settled()
        await self._started()
        self._forget_chatter()
        self._doing = "reading the request"
        sent = False
        try:
            await self._send(request.model_dump_json())
            sent = True
            return await self._result(request, on_progress)
        except (*_GONE, TimeoutError) as error:
            death = await self._death(hung=isinstance(error, TimeoutError))
            if where := death.in_reference(request.task.folder):
                return _reference_hangs(request, where)
            raise death.error() from error
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self._stop(sent)
            raise

    async def _result(self, request: EvaluationRequest, on_progress: Progress) -> BenchmarkResult:
        while True:
            with anyio.fail_after(self._patience.between_signs(request)):
                message = await self._message()
            if "progress" in message:
                self._doing = message["progress"]
                on_progress(message["progress"], message["share"])
            elif "cancelled" in message:
                raise EvaluationCancelled
            elif "harness_error" in message:
                raise HarnessError(message["harness_error"], message["cause"])
            else:
                self._ending = True
                return BenchmarkResult.model_validate(message["result"])

    async def _stop(self, sent: bool) -> None:
        """End the evaluation and keep the process warm; kill it when it does not come to an end soon."""
        with suppress(*_GONE), anyio.move_on_after(self._patience.cancel_s):
            if sent:
                await self.cancel()
                while not LAST.intersection(await self._message()):
                    pass
                return
        await self._end()

    # --- the process ------------------------------------------------------------------------------------------------

    async def _started(self) -> None:
        if self._process and self._process.returncode is None:
            return
        await self._end()
        try:
            await self._start()
            with anyio.fail_after(self._patience.start_s):
                message = await self._message()
        except (*_GONE, TimeoutError) as error:
            death = await self._death(hung=isinstance(error, TimeoutError))
            raise death.not_started(self._python) from error
        except anyio.get_cancelled_exc_class():
            with anyio.CancelScope(shield=True):
                await self._end()
            raise
        if "ready" not in message:
            await self._end()
            raise HarnessError(f"the judge did not start: {message['failed']}", Cause.JUDGE_NOT_STARTED)

    async def _start(self) -> None:
        command = [sys.executable, "-P", "-m", "toolkits.core.judge", self._python]
        stderr = self._stderr = self._stack.enter_context(_memory_file())
        self._process = await self._stack.enter_async_context(
            started_process(command, cwd=Path.cwd(), env=_environment(), stdin=subprocess.PIPE, stderr=stderr)
        )
        assert self._process.stdout
        self._lines = BufferedByteReceiveStream(self._process.stdout)

    async def _death(self, *, hung: bool) -> Death:
        """Its exit status and last words; ends what is left of it."""
        returncode = None
        if self._process and not hung:
            with anyio.move_on_after(EXIT_PATIENCE_S):
                returncode = await self._process.wait()
        death = Death(returncode, self._last_words(), self._doing)
        await self._end()
        return death

    async def _end(self) -> None:
        self._process = self._stderr = None
        self._ending = False
        await self._stack.aclose()

    def _last_words(self) -> str:
        """The end of what the judge wrote to stderr: our own crash, to be reported."""
        if not self._stderr:
            return ""
        start = max(self._said_bytes() - LAST_WORDS_BYTES, 0)
        return os.pread(self._stderr.fileno(), LAST_WORDS_BYTES, start).decode("utf-8", errors="replace")

    def _said_bytes(self) -> int:
        return os.fstat(self._stderr.fileno()).st_size if self._stderr else 0

    def _forget_chatter(self) -> None:
        """What a task's reference prints at every call must not fill the memory."""
        if self._stderr and self._said_bytes() > CHATTER_BYTES:
            os.ftruncate(self._stderr.fileno(), 0)

    async def _send(self, line: str) -> None:
        assert self._process and self._process.stdin
        await self._process.stdin.send(line.encode() + b"\n")

    async def _message(self) -> Json:
        assert self._lines
        message: Any = json.loads(await self._lines.receive_until(b"\n", LINE_BYTES))
        return message


def _reference_hangs(request: EvaluationRequest, where: str) -> BenchmarkResult:
    """The judge ended itself in the task's own code: nobody is judged, and it is not tried again."""
    limit = request.task.reference_timeout_s
    return BenchmarkResult(
        task=request.task.name,
        solution=request.candidate.id,
        mode=request.mode,
        status=Status.INVALID_REFERENCE,
        stage=Stage.CORRECTNESS,
        baseline=f"{request.baseline_name} {request.baseline.id}",
        cause=Cause.REFERENCE_TIMEOUT,
        detail=f"reference.py of task {request.task.name} did not return within {limit:g} s: it was in {where}",
        hint=Cause.REFERENCE_TIMEOUT.hint,
    )


def _memory_file() -> IO[bytes]:
    """For the judge's standard error: a full disk must not keep it from saying so. Always written at its end."""
    file = os.fdopen(os.memfd_create("judge-stderr"), "w+b", buffering=0)
    fcntl.fcntl(file.fileno(), fcntl.F_SETFL, os.O_RDWR | os.O_APPEND)
    return file


def _environment() -> dict[str, str]:
    """One thread, and an allocator that keeps freed tensors: giving them back costs a page fault for each 4 KB."""
    return os.environ | {
        "OMP_NUM_THREADS": "1",
        "MALLOC_MMAP_THRESHOLD_": str(1 << 32),
        "MALLOC_TRIM_THRESHOLD_": str(1 << 32),
    }
