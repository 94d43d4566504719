"""The server's handle on its judge process: started at the first evaluation, warm afterwards. Imports no torch."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import IO, Any

import anyio
import anyio.abc
from anyio.streams.buffered import BufferedByteReceiveStream

from toolkits.core.errors import HarnessError
from toolkits.core.judge.request import EvaluationRequest
from toolkits.core.process import started_process
from toolkits.core.schema import BenchmarkResult, Json

START_TIMEOUT_S = 120.0
EVALUATION_TIMEOUT_S = 900.0
LINE_BYTES = 8_000_000

Progress = Callable[[str, float], None]


class EvaluationCancelled(Exception):
    """The evaluation was ended on request."""


class Judge:
    """One judge process; evaluations queue behind each other."""

    def __init__(self, python: str = sys.executable) -> None:
        self._python = python
        self._stack = AsyncExitStack()
        self._process: anyio.abc.Process | None = None
        self._lines: BufferedByteReceiveStream | None = None
        self._turn = anyio.Lock()
        self._stderr: IO[bytes] | None = None

    async def start(self) -> None:
        """Start the process now, so that the first evaluation does not pay for it."""
        async with self._turn:
            await self._started()

    async def evaluate(self, request: EvaluationRequest, on_progress: Progress) -> BenchmarkResult:
        """Judge one candidate. HarnessError: the judge itself failed; the next call starts a new one."""
        async with self._turn:
            try:
                await self._started()
                with anyio.fail_after(EVALUATION_TIMEOUT_S):
                    await self._send(request.model_dump_json())
                    return await self._result(on_progress)
            except (OSError, anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError, TimeoutError) as error:
                said = self._last_words()
                await self._end()
                raise HarnessError(f"the judge ended or hung during an evaluation: try again. {said}") from error
            except anyio.get_cancelled_exc_class():
                with anyio.CancelScope(shield=True):
                    await self._end()
                raise

    async def cancel(self) -> None:
        """Ask the evaluation in progress to end; it raises EvaluationCancelled where it is awaited."""
        if self._process:
            await self._send(json.dumps({"cancel": True}))

    async def close(self) -> None:
        """End the process and every worker of it."""
        await self._end()

    async def _started(self) -> None:
        if self._process and self._process.returncode is None:
            return
        await self._end()
        command = [sys.executable, "-P", "-m", "toolkits.core.judge", self._python]
        self._stderr = stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the stack
        self._stack.enter_context(stderr)
        self._process = await self._stack.enter_async_context(
            started_process(command, cwd=Path.cwd(), env=_environment(), stdin=subprocess.PIPE, stderr=stderr)
        )
        assert self._process.stdout
        self._lines = BufferedByteReceiveStream(self._process.stdout)
        with anyio.fail_after(START_TIMEOUT_S):
            message = await self._message()
        if "ready" not in message:
            raise HarnessError(f"the judge did not start: {message}")

    async def _end(self) -> None:
        self._process = None
        await self._stack.aclose()

    def _last_words(self) -> str:
        """The end of what the judge wrote to stderr: our own crash, to be reported."""
        if not self._stderr:
            return ""
        self._stderr.seek(0)
        return self._stderr.read().decode("utf-8", errors="replace")[-1500:]

    async def _send(self, line: str) -> None:
        assert self._process and self._process.stdin
        await self._process.stdin.send(line.encode() + b"\n")

    async def _message(self) -> Json:
        assert self._lines
        message: Any = json.loads(await self._lines.receive_until(b"\n", LINE_BYTES))
        return message

    async def _result(self, on_progress: Progress) -> BenchmarkResult:
        while True:
            message = await self._message()
            if "progress" in message:
                on_progress(message["progress"], message["share"])
            elif "cancelled" in message:
                raise EvaluationCancelled
            elif "harness_error" in message:
                raise HarnessError(message["harness_error"])
            else:
                return BenchmarkResult.model_validate(message["result"])


def _environment() -> dict[str, str]:
    """One thread, and an allocator that keeps freed tensors: giving them back costs a page fault for each 4 KB."""
    return os.environ | {
        "OMP_NUM_THREADS": "1",
        "MALLOC_MMAP_THRESHOLD_": str(1 << 32),
        "MALLOC_TRIM_THRESHOLD_": str(1 << 32),
    }
