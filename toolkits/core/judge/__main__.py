"""The judge's process: one JSON request a line on stdin, one JSON answer a line on stdout; warm in between.

    python -P -m toolkits.core.judge [PYTHON]

PYTHON is the interpreter of the workers. A line that arrives during an evaluation asks for it to end. Closing stdin
ends the process, and with it every worker.
"""

import json
import os
import select
import sys
from typing import Any

import torch

from toolkits.core.errors import LabError
from toolkits.core.judge.judge import Judge
from toolkits.core.judge.request import EvaluationRequest
from toolkits.core.judge.workers import Cancelled
from toolkits.core.judge.zygotes import default_cpu, start_zygote
from toolkits.core.parent import die_with_parent

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
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    torch.set_num_threads(1)
    requests = Requests(0)
    python = sys.argv[1] if len(sys.argv) > 1 else sys.executable
    judge = Judge(lambda: start_zygote(python, default_cpu()), requests.stop_asked, requests.fd)

    def say(**message: Any) -> None:
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    say(ready=os.getpid())
    wait: float | None = None
    while (line := requests.next(wait)) != "":
        if line is None:
            wait = 0.0 if judge.idle() else None
            continue
        if "cancel" not in json.loads(line):
            _answer(judge, line, say)
        wait = IDLE_DELAY_S
    judge.close()


def _answer(judge: Judge, line: str, say: Any) -> None:
    request = EvaluationRequest.model_validate_json(line)
    try:
        result = judge.evaluate(request, lambda what, share: say(progress=what, share=share))
        say(result=result.model_dump(mode="json"))
    except Cancelled:
        say(cancelled=True)
    except LabError as error:
        say(harness_error=str(error))


if __name__ == "__main__":
    main()
