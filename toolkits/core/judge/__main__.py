"""The judge's process: one JSON request a line on stdin, one JSON answer a line on stdout; warm in between.

    python -P -m toolkits.core.judge [PYTHON]

PYTHON is the interpreter of the workers. A line that arrives during an evaluation asks for it to end. Closing stdin
ends the process, and with it every worker. An error that nobody foresaw ends it too: the server reads the traceback.
"""

import json
import os
import select
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import torch

from toolkits.core.errors import HarnessError, LabError
from toolkits.core.judge.gpu_judge import GpuJudge
from toolkits.core.judge.judge import Judge
from toolkits.core.judge.request import EvaluationRequest
from toolkits.core.judge.taskcode import expect_hangs
from toolkits.core.judge.workers import Cancelled
from toolkits.core.judge.zygotes import default_cpu, start_zygote
from toolkits.core.parent import die_with_parent, hide_memory
from toolkits.core.schema import BenchmarkResult

IDLE_DELAY_S = 0.5
"""Of quiet before used cases are renewed: back-to-back evaluations are not made to wait."""


class Requests:
    """Lines from the server, readable by file descriptor so that an evaluation can watch for a cancel."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._buffer = b""

    def next(self, timeout_s: float | None) -> str | None:
        """The next line; None when the time is over; empty when the server is gone."""
        while b"\n" not in self._buffer:
            if not select.select([self.fd], [], [], timeout_s)[0]:
                return None
            chunk = os.read(self.fd, 1 << 20)
            if not chunk:
                return ""
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode()

    def stop_asked(self) -> bool:
        """Whether what arrived ends the evaluation: a cancel line, or the server's end."""
        line = self.next(0)
        return line is not None and (not line or "cancel" in json.loads(line))


def main() -> None:
    die_with_parent()
    hide_memory()  # seeds and expected values: without a box a solution runs as the same user
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    torch.set_num_threads(1)
    requests = Requests(0)
    python = sys.argv[1] if len(sys.argv) > 1 else sys.executable
    cpu = default_cpu()
    os.sched_setaffinity(0, {cpu})  # where its workers are: see judge.py

    def say(**message: Any) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    try:
        judge = Judge(lambda: start_zygote(python, cpu), requests.stop_asked, requests.fd)
    except LabError as error:
        say(failed=str(error))
        return
    on_devices: dict[str, GpuJudge] = {}

    def judge_of(device: str) -> Judge:
        """A device has a judge of its own, from its first evaluation on."""
        if device and device not in on_devices:
            start = partial(start_zygote, python, cpu, device)
            on_devices[device] = GpuJudge(start, requests.stop_asked, requests.fd, device)
        return on_devices.get(device, judge)

    expect_hangs()
    say(ready=os.getpid())
    wait: float | None = None
    while (line := requests.next(wait)) != "":
        if line is None:
            wait = 0.0 if judge.idle() else None
            continue
        if "cancel" not in json.loads(line):
            _answer(judge_of, line, say)
            judge.prepare()
        wait = IDLE_DELAY_S
    for each in (judge, *on_devices.values()):
        each.close()


def _answer(judge_of: Callable[[str], Judge], line: str, say: Any) -> None:
    """The result as soon as it is known, and then that nothing of the candidate is alive; or what kept it from that."""
    started = time.perf_counter()
    request = EvaluationRequest.model_validate_json(line)
    judge: Judge | None = None
    try:
        judge = judge_of(request.candidate_build.device)
        result = judge.evaluate(request, lambda what, share: say(progress=what, share=share))
        say(result=_with_the_rest(result, started).model_dump(mode="json"))
        judge.settle()
        say(settled=True)
    except Cancelled:
        if judge:
            judge.settle()
        say(cancelled=True)
    except HarnessError as error:
        with suppress(HarnessError):
            if judge:
                judge.settle()
        say(harness_error=str(error), cause=error.cause)


def _with_the_rest(result: BenchmarkResult, started: float) -> BenchmarkResult:
    """The account of its time completed by what no part of it names: the request read, statistics."""
    known = result.kernel_ms + sum(result.overhead_ms.values())
    rest = (time.perf_counter() - started) * 1e3 - known
    return result.model_copy(update={"overhead_ms": result.overhead_ms | {"verdict": round(rest, 2)}})


if __name__ == "__main__":
    main()
