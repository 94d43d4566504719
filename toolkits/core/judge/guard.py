"""The judge's say in whether a worker may make a process: yes while it loads and warms up, no while it is timed.

Answers what the filter of seccomp.py asks. Knows no channel and no verdict.
"""

import errno
import os
import select
import struct
import time
from contextlib import suppress
from fcntl import ioctl

_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_REQUEST_BYTES = 80
_ANSWER = struct.Struct("=QqiI")
"""Number of the request, return value, negative errno, flags."""
_CONTINUE = 1
SETTLE_S = 0.005
MOST_AT_ONCE = 100
MOST_PROCESSES = 2000
"""A worker's life long: torch.compile takes some ten for each function, a bomb takes all."""


class Guard:
    """The listener of one worker and of all that it started; without one, nobody asks."""

    def __init__(self) -> None:
        self.fd: int | None = None
        self._permitted = True
        self._made = 0
        self._lately = False
        self._refused = 0
        self._poll = select.poll()

    def listen(self, listener: int) -> None:
        self.fd = listener
        self._poll.register(listener, select.POLLIN)

    @property
    def made_none(self) -> bool:
        """Whether it is sure that no process was ever made: each was asked for here, and none granted."""
        return self.fd is not None and self._made == 0

    def permit(self) -> None:
        self._permitted = True

    def forbid(self) -> None:
        """From now on every request is refused and remembered; those that wait are refused, and forgiven."""
        self._permitted = False
        self.answer_all()
        self._refused = 0
        if self._lately:  # who was told yes may not have run since, having to share the judge's core
            time.sleep(SETTLE_S)
        self._lately = False

    def refused(self) -> int:
        """Requests since the last `forbid`, those that wait included."""
        self.answer_all()
        return self._refused

    def answer_all(self) -> None:
        """Decide on what is asked now; a storm of requests has no end, and the judge has more to do."""
        for _ in range(MOST_AT_ONCE):
            if not any(event & select.POLLIN for _, event in self._poll.poll(0)):
                return
            self._answer()

    def _answer(self) -> None:
        assert self.fd is not None
        request = bytearray(_REQUEST_BYTES)
        # Who asked may be dead by now.
        with suppress(OSError):
            ioctl(self.fd, _RECEIVE, request)
            ioctl(self.fd, _SEND, bytearray(self._decided(int.from_bytes(request[:8], "little"))))

    def _decided(self, number: int) -> bytes:
        if not self._permitted:
            self._refused += 1
            return _ANSWER.pack(number, 0, -errno.EPERM, 0)
        if self._made >= MOST_PROCESSES:
            return _ANSWER.pack(number, 0, -errno.EAGAIN, 0)
        self._made += 1
        self._lately = True
        return _ANSWER.pack(number, 0, 0, _CONTINUE)

    def close(self) -> None:
        """Who asks afterwards is told that there is no such call."""
        if self.fd is not None:
            self._poll.unregister(self.fd)
            os.close(self.fd)
        self.fd = None
