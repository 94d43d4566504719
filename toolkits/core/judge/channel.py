"""The judge's line to one worker: ask with a time limit, take the answer that belongs, drain what the solution prints.

While it waits it answers the worker's guard and looks at its memory. Knows nothing of what is asked.
"""

import json
import os
import secrets
import select
import socket
import time
from array import array
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from toolkits.core.causes import Cause
from toolkits.core.judge.guard import Guard
from toolkits.core.judge.worker import MESSAGE_BYTES
from toolkits.core.process import BoundedText
from toolkits.core.schema import Status

OUTPUT_KEEP = 4_000
READS_AT_END = 2
"""As much as a pipe holds, once more than enough."""
READY_TIMEOUT_S = 60.0
LOOK_EVERY_S = 0.05
OWN_FAULTS = (Status.INCORRECT_SHAPE, Status.INCORRECT_DTYPE)
OWN_CAUSES = (Cause.OOM, Cause.LAUNCH_FAILED, Cause.INPUT_MODIFIED)
"""What a worker may say of its own solution; every other status and cause is for the judge to give."""


class Cancelled(Exception):
    """The server asked for the evaluation to end."""


class HungUp(Exception):
    """The other end is closed, or never was ready."""


class WorkerFailure(Exception):
    """The worker did not answer as it should: it raised, died, or ran past its limit."""

    def __init__(self, cause: str, detail: str, status: Status = Status.RUNTIME_ERROR) -> None:
        super().__init__(detail)
        self.cause, self.detail, self.status = cause, detail, status


class Channel:
    """The judge's ends of a worker's socket, output pipe and guard."""

    def __init__(self, stop: Callable[[], bool], stop_fd: int) -> None:
        self._stop, self._stop_fd = stop, stop_fd
        self._socket, self.far_socket = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._output, self.far_output = os.pipe()
        os.set_blocking(self._output, False)
        self._poll = select.poll()
        self._only_answer = [(self._socket.fileno(), select.POLLIN)]
        for fd in (self._socket.fileno(), self._output, stop_fd):
            self._poll.register(fd, select.POLLIN)
        self._text = BoundedText(OUTPUT_KEEP)
        self._requests = 0
        self.guard = Guard()

    def meet(self) -> None:
        """Take the first packet, sent before any solution is there: the guard's listener, if there can be one."""
        self._socket.settimeout(READY_TIMEOUT_S)
        try:
            packet, fds, _, _ = socket.recv_fds(self._socket, MESSAGE_BYTES, 1)
        except OSError as error:
            raise HungUp from error
        self._socket.settimeout(None)
        if not packet:
            raise HungUp
        if fds:
            self.guard.listen(fds[0])
            self._poll.register(fds[0], select.POLLIN)

    def ask(self, request: dict[str, Any], timeout_s: float, fds: list[int], look: Callable[[], None]) -> Any:
        """Send a request and wait for its answer; look now and then, and after the answer not at all."""
        self._requests += 1
        request |= {"id": self._requests, "nonce": secrets.token_hex(8)}
        self._send(json.dumps(request).encode(), fds)
        deadline = time.monotonic() + timeout_s
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise WorkerFailure(Cause.TIME_LIMIT, f"no answer within {timeout_s:g} s", Status.TIMEOUT)
            ready = self._ready(min(left, LOOK_EVERY_S))
            if self._socket.fileno() in ready and (answer := self._answer(request)):
                return answer
            look()

    def _send(self, request: bytes, fds: list[int]) -> None:
        """Never wait for room: who answers has taken the request, or only looked at it and left it where it lies."""
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array("i", fds))] if fds else []
        try:
            self._socket.sendmsg([request], rights, socket.MSG_DONTWAIT)
        except BlockingIOError as error:
            what = "the solution answers the judge's requests and leaves them unread in its channel"
            raise WorkerFailure(Cause.EXIT_EARLY, what) from error
        except OSError as error:
            raise HungUp from error

    def _ready(self, patience_s: float) -> set[int]:
        """What can be read, after all but the answer has been seen to."""
        found = self._poll.poll(patience_s * 1000)
        if found == self._only_answer:
            return {found[0][0]}
        events = dict(found)
        if self._stop_fd in events and self._stop():
            raise Cancelled
        if self._output in events:
            self._drain()
        if self.guard.fd is not None and (event := events.get(self.guard.fd)):
            self.guard.answer_all()
            if not event & select.POLLIN:  # nobody is left who could ask
                self._poll.unregister(self.guard.fd)
        return set(events)

    def _answer(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """The next packet if it answers `request`; anything else on the channel is dropped."""
        packet = b""
        with suppress(OSError):
            packet = self._socket.recv(MESSAGE_BYTES)
        if not packet:
            raise HungUp
        try:
            answer: Any = json.loads(packet)
        except (ValueError, RecursionError):
            return None
        if not _belongs(answer, request):
            return None
        if "error" in answer:
            raise _exception(answer)
        return answer

    def _drain(self) -> None:
        """Take what the solution printed, until its last end is closed."""
        with suppress(BlockingIOError):
            chunk = os.read(self._output, 65536)
            self._text.add(chunk)
            if not chunk:
                with suppress(KeyError):
                    self._poll.unregister(self._output)

    def output(self) -> str:
        """What the solution printed: it means nothing and is for people. It may print without end."""
        for _ in range(READS_AT_END):
            self._drain()
        return str(self._text)

    def give_away(self) -> None:
        """Close what the worker has by now."""
        self.far_socket.close()
        os.close(self.far_output)

    def hang_up(self) -> None:
        self._socket.close()

    def close(self) -> None:
        self.hang_up()
        self.guard.close()
        os.close(self._output)


def _exception(answer: dict[str, Any]) -> WorkerFailure:
    """What the worker says of its solution's failure: text to be shown, and bounded in every way."""
    said = answer["error"] if isinstance(answer["error"], str) else "an error that is no text"
    detail = said[:2000].encode("utf-8", "replace").decode()
    status = next((own for own in OWN_FAULTS if own == answer.get("status")), Status.RUNTIME_ERROR)
    cause = next((own for own in OWN_CAUSES if own == answer.get("cause")), Cause.EXCEPTION)
    return WorkerFailure(cause, detail, status)


def _belongs(answer: Any, request: dict[str, Any]) -> bool:
    """Whether a packet answers this request; a candidate may have written anything."""
    try:
        return (answer["id"], answer["nonce"]) == (request["id"], request["nonce"])
    except (TypeError, KeyError):
        return False
