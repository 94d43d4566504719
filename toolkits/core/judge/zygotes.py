"""The judge's handle on its zygote: start it, have it fork workers, collect what became of them."""

import itertools
import json
import os
import secrets
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolkits.core.errors import HarnessError
from toolkits.core.gpu.device_access import numbering, openings
from toolkits.core.judge import seccomp
from toolkits.core.judge.boxes import Box, Folder, any_core
from toolkits.core.judge.confine import open_to_all
from toolkits.core.judge.zygote import MESSAGE_BYTES
from toolkits.core.parent import children, lives
from toolkits.core.process import start_child
from toolkits.core.sandbox import USERS, can_change_user, mechanism

FILTERS = {
    seccomp.LISTENED: "no new processes while timed",
    seccomp.REFUSED: "no processes at all (nobody can listen to this kernel's seccomp, so torch.compile fails here)",
    seccomp.NONE: "processes are not stopped (this kernel has no seccomp filters)",
}
"""What a worker's filter of system calls comes to."""
ANSWER_TIMEOUT_S = 120.0
"""Starting included: the import of torch from a cold disk."""
FULL_BYTES = 1 << 16


@dataclass
class Ticket:
    """A worker that was ordered."""

    room: Box | Folder
    pid: int = 0
    """0 until it is known, and for one that could not enter its box."""


class Zygote:
    """A started zygote process and its control channel."""

    def __init__(self, python: str, cpu: int, device: str = "") -> None:
        """Where a device is named, its workers can reach that one too."""
        self.cpu = cpu
        opened, self._nodes = openings(device) if device else ([], [])
        self._device = bool(device)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [python, "-P", "-m", "toolkits.core.judge.zygote", str(theirs.fileno())]
        env = _environment(python) | (numbering(device) if device else {})
        self._process = start_child(command, env=env, pass_fds=[theirs.fileno()])
        theirs.close()
        self._control = ours
        self._control.settimeout(ANSWER_TIMEOUT_S)
        self._rooms: dict[int, Box | Folder] = {}
        self._spare: Box | None = None
        self._expected: Ticket | None = None
        self._lost = False
        self._serials = itertools.count(secrets.randbelow(len(USERS)))
        ready = self._control.recv(MESSAGE_BYTES)
        if not ready:
            raise HarnessError(f"{python} cannot run the judge's worker: it needs torch and numpy")
        self._seen: dict[str, list[str]] = json.loads(ready)
        self._seen["visible"] += opened
        self._bwrap, self._why_not = mechanism().bwrap, mechanism().why_not
        # Another user is in none of the groups to which a device may belong.
        self._other_user = can_change_user() and all(map(_open_to_all, self._nodes))
        self._filter = self._tried() if self._bwrap else ""
        if self._bwrap and not self._filter:
            self._bwrap, self._why_not = "", "a worker cannot enter the namespaces that bubblewrap makes"
        if not self._bwrap:  # the worker reads the interpreter where it lies, which another user may not be able to
            self._other_user &= all(open_to_all(path) for path in self._seen["visible"])
            self._filter = self._tried()
        if not self._filter:
            raise HarnessError(f"no worker starts with {python}: its message is in the server's log")

    def _tried(self) -> str:
        """What a first worker says of its filter; nothing if it cannot be had at all."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with suppress(HarnessError, OSError), ours:
            with theirs:
                pid = self.fork(theirs, 2)
            packet, listeners, _, _ = socket.recv_fds(ours, MESSAGE_BYTES, 1)
            for listener in listeners:
                os.close(listener)
            ours.close()  # the worker ends
            self.reap(pid)
            return str(json.loads(packet)["filter"]) if packet else ""
        return ""

    def sandbox(self) -> str:
        """What holds its workers, for the record."""
        user = "another user" if self._other_user else "this user"
        held = f"bwrap, {user}, limits" if self._bwrap else f"limits only, {user} ({self._why_not})"
        return f"{held}, {FILTERS[self._filter]}"

    def usable(self) -> bool:
        """False once it has ended or stopped to answer: then another one is needed."""
        return not self._lost and self._process.poll() is None

    def keeps_core(self) -> bool:
        """Whether a worker's filter holds it on its core."""
        return self._filter in (seccomp.LISTENED, seccomp.REFUSED)

    def fork(self, channel: socket.socket, output: int) -> int:
        """The pid of a new worker, in a room of its own."""
        return self.pid_of(self.order(channel, output))

    def order(self, channel: socket.socket, output: int) -> "Ticket":
        """Have a worker forked, in a room of its own; nobody waits for it before `pid_of`."""
        uid = USERS[next(self._serials) % len(USERS)] if self._other_user else None
        room = self._box() if self._bwrap else Folder(uid)
        fds = [channel.fileno(), output]
        try:
            if isinstance(room, Box):
                fds.append(room.entrance())
            self._collect()
            request = {"op": "spawn", "cpu": self.cpu, "home": room.home, "uid": uid, "device": self._device}
            self._send(request, fds)
        except BaseException:
            room.close()
            raise
        finally:
            for entrance in fds[2:]:
                os.close(entrance)
        self._expected = Ticket(room)
        return self._expected

    def pid_of(self, ticket: "Ticket") -> int:
        """The pid of a worker that was ordered."""
        if ticket is self._expected:
            self._collect()
        if not ticket.pid:
            raise HarnessError("a worker could not enter its sandbox: the zygote's message is in the server's log")
        return ticket.pid

    def _collect(self) -> None:
        """Take the answer to the last order: answers come in the order of requests."""
        ticket, self._expected = self._expected, None
        if not ticket:
            return
        try:
            ticket.pid = int(self._answer()["pid"])
        finally:
            if ticket.pid:
                self._rooms[ticket.pid] = ticket.room
            else:
                ticket.room.close()

    def build_ahead(self) -> None:
        """Have the next worker's box built, now that nothing is timed which that would disturb."""
        if self._bwrap and not self._spare and not self._lost:
            self._spare = self._new_box()

    def _box(self) -> Box:
        """The one that was built ahead of time, if there is one."""
        box, self._spare = self._spare, None
        if box and not box.alive():
            box.close()
            box = None
        return box or self._new_box()

    def _new_box(self) -> Box:
        return Box(self._bwrap, self._seen["visible"], self._seen["hidden"], self._nodes)

    def end(self, pid: int) -> None:
        """Kill a worker, with all that runs in its box; `reap` sees them dead."""
        self._rooms[pid].end()
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def reap(self, pid: int) -> int:
        """Wait status of a worker that has been killed or has ended; its room, and all that ran there, is gone."""
        room = self._rooms.pop(pid)
        try:
            return int(self._asked({"op": "reap", "pid": pid})["status"])
        finally:
            room.close()

    def company(self, pid: int) -> set[int]:
        """Processes that a worker started and that still run, those whose parent has ended among them."""
        found = children(pid) | self._rooms[pid].strays() | (children(self._process.pid) - set(self._rooms))
        return {other for other in found if lives(other)}

    def stored(self, pid: int) -> int:
        """Bytes in the folders of a worker's box, which lie in memory."""
        return sum(taken for taken, _ in self._rooms[pid].stored().values())

    def full(self, pid: int) -> list[str]:
        """The folders of a worker's box that can take no more."""
        return [folder for folder, (_, free) in self._rooms[pid].stored().items() if free < FULL_BYTES]

    def _asked(self, request: dict[str, Any]) -> dict[str, Any]:
        self._collect()
        self._send(request)
        return self._answer()

    def _send(self, request: dict[str, Any], fds: Sequence[int] = ()) -> None:
        with suppress(OSError):  # then it does not answer either
            socket.send_fds(self._control, [json.dumps(request).encode()], fds)

    def _answer(self) -> dict[str, Any]:
        packet = b""
        with suppress(OSError):
            packet = self._control.recv(MESSAGE_BYTES)
        if not packet:
            self._lost = True
            raise HarnessError(
                f"the judge's zygote, the parent of all workers, {self._ending()} during an evaluation: a solution"
                " killed it, or memory ran out; the next evaluation starts another"
            )
        return json.loads(packet)

    def _ending(self) -> str:
        """How it ended; a process whose socket is closed is about to."""
        with suppress(subprocess.TimeoutExpired):
            code = self._process.wait(timeout=1)
            return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        return "stopped to answer"

    def close(self) -> None:
        self._control.close()
        self._process.kill()
        self._process.wait()
        for room in (self._spare, self._expected.room if self._expected else None):
            if room:
                room.close()


def _open_to_all(node: str) -> bool:
    """Whether any user may use a device file; folders of them hold what only an administrator needs."""
    mode = Path(node).stat().st_mode
    return not stat.S_ISCHR(mode) or mode & 0o006 == 0o006


def _environment(python: str) -> dict[str, str]:
    """Built from nothing: a candidate inherits it. Another interpreter is shown where this package lies."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    source = {} if python == sys.executable else {"PYTHONPATH": str(Path(__file__).parents[3])}
    # Threads that wait must sleep: one that spins after its work is done looks like work after the return.
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "OMP_WAIT_POLICY": "passive",
        # Freed memory stays with the process: else one that has seen large tensors is faster than one that has not.
        "MALLOC_MMAP_THRESHOLD_": str(1 << 32),
        "MALLOC_TRIM_THRESHOLD_": str(1 << 32),
        **source,
        **threads,
    }


def start_zygote(python: str, cpu: int, device: str = "") -> Zygote:
    """A zygote, or a HarnessError that says what is missing."""
    try:
        with any_core():  # its workers go to their core themselves
            return Zygote(python, cpu, device)
    except (OSError, subprocess.SubprocessError) as error:
        raise HarnessError(
            f"cannot start the judge's worker with {python}: {error}; is it the right Python?"
        ) from error


def default_cpu() -> int:
    """The core that candidate and baseline share: the last one allowed, since the first is busiest with interrupts."""
    return max(os.sched_getaffinity(0))
