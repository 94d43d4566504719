"""The judge's side of its workers: start, ask with a time limit, read the clocks from outside, kill and see them dead.

CPU time is read by the kernel's clock of the worker's process, wall time by the judge's own clock; what the worker says
of its time is kept beside them as a claim.
"""

import json
import os
import secrets
import select
import signal
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from toolkits.core.judge.arena import Inputs, Memory, Outputs
from toolkits.core.judge.worker import MESSAGE_BYTES
from toolkits.core.judge.zygotes import Zygote
from toolkits.core.process import BoundedText, started_at
from toolkits.core.schema import CompileResult, Solution, Status, Task

LOAD_TIMEOUT_S = 60.0
OUTPUT_KEEP = 4_000
READS_AT_END = 2
"""As much as a pipe holds, once more than enough."""
OWN_FAULTS = (Status.INCORRECT_SHAPE, Status.INCORRECT_DTYPE)
"""What a worker may say of its own solution; every other status is for the judge to give."""
SETTLE_LIMIT_NS = 20_000_000


class Cancelled(Exception):
    """The server asked for the evaluation to end."""


class WorkerFailure(Exception):
    """The worker did not answer as it should: it raised, died, or ran past its limit."""

    def __init__(self, cause: str, detail: str, status: Status = Status.RUNTIME_ERROR) -> None:
        super().__init__(detail)
        self.cause, self.detail, self.status = cause, detail, status


@dataclass(frozen=True)
class Spent:
    """What one call cost."""

    cpu_ns: int
    """CPU time of the function alone, by the worker's own clock: a claim, to be believed only beside `outer_ns`."""
    outer_ns: int
    """CPU time of the worker's process for the whole request, read by the judge."""
    wall_ns: int
    """The judge's wall clock for the whole request."""
    queued_ns: int = 0
    """Time in which it, or the judge that waits for its answer, was ready to run but found no free core."""
    idle_ns: int = 0
    """CPU time that the process used since its last call was answered, when it had nothing to do."""


class Worker:
    """One forked process with one solution loaded."""

    def __init__(self, zygote: Zygote, stop: Callable[[], bool], stop_fd: int) -> None:
        self._zygote, self._stop, self._stop_fd = zygote, stop, stop_fd
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._stdout, write_end = os.pipe()
        os.set_blocking(self._stdout, False)
        self.pid = zygote.fork(theirs, write_end)
        theirs.close()
        os.close(write_end)
        self._channel = ours
        # The kernel's CPU clock of another process (see clock_getcpuclockid).
        self._cpu_clock = ((~self.pid) << 3) | 2
        self._stat = os.open(f"/proc/{self.pid}/stat", os.O_RDONLY)
        self._schedstats = [os.open(f"/proc/{pid}/schedstat", os.O_RDONLY) for pid in (self.pid, os.getpid())]
        self._poll = select.poll()
        for fd in (ours.fileno(), self._stdout, stop_fd):
            self._poll.register(fd, select.POLLIN)
        self._text = BoundedText(OUTPUT_KEEP)
        self._requests = 0
        self._outputs: dict[int, Outputs] = {}
        self._answered_at = 0
        self.kernel_ns = 0

    def load(self, solution: Solution, build: CompileResult, timeout_s: float = LOAD_TIMEOUT_S) -> None:
        """Load the entry function; the worker gets the build's content, not its place."""
        assert build.artifact
        content = _content(build.artifact)
        request = {
            "op": "load",
            "toolkit": solution.toolkit,
            "file": solution.entry_file,
            "function": solution.entry_function,
            "destination_passing_style": solution.destination_passing_style,
        }
        try:
            self._ask(request, timeout_s, [content])
        finally:
            os.close(content)

    def bind(self, slot: int, task: Task, axes: dict[str, int], inputs: Inputs, outputs: Outputs) -> None:
        """Give the worker a workload's memory."""
        request = {
            "op": "bind",
            "slot": slot,
            "sizes": [inputs.size, outputs.size],
            "arguments": _arguments(task, inputs, outputs),
            "axes": [axes[name] for name in task.var_axes()],
        }
        self._ask(request, LOAD_TIMEOUT_S, [inputs.fd, outputs.fd])
        self._outputs[slot] = outputs

    def outputs(self, slot: int) -> Outputs:
        return self._outputs[slot]

    def bound(self, slot: int) -> bool:
        return slot in self._outputs

    def call(self, slot: int, scalars: dict[str, Any], timeout_s: float) -> Spent:
        """Run the function once on what the memory holds, into poisoned outputs."""
        self._outputs[slot].poison()
        idle_ns = self._cpu_ns() - self._answered_at
        self._ask({"op": "warm", "slot": slot}, LOAD_TIMEOUT_S)
        spent = self._timed({"op": "call", "slot": slot, "scalars": scalars}, timeout_s)
        self._answered_at = self._cpu_ns()
        self.kernel_ns += spent.cpu_ns
        return replace(spent, idle_ns=idle_ns)

    def _cpu_ns(self) -> int:
        try:
            return time.clock_gettime_ns(self._cpu_clock)
        except OSError as error:
            raise self._died() from error

    def _timed(self, request: dict[str, Any], timeout_s: float) -> Spent:
        try:
            queued = self._queued_ns()
            outer = time.clock_gettime_ns(self._cpu_clock)
            wall = time.perf_counter_ns()
            answer = self._ask(request, timeout_s)
            wall = time.perf_counter_ns() - wall
            self._settle()
            outer = time.clock_gettime_ns(self._cpu_clock) - outer
            return Spent(_claim(answer, outer), outer, wall, self._queued_ns() - queued)
        except OSError as error:
            raise self._died() from error

    def _settle(self) -> None:
        """Wait until the worker sleeps again: the CPU clock of a process that runs is old by up to a scheduler tick."""
        deadline = time.perf_counter_ns() + SETTLE_LIMIT_NS
        while os.pread(self._stat, 512, 0).rpartition(b") ")[2][:1] == b"R" and time.perf_counter_ns() < deadline:
            pass

    def _queued_ns(self) -> int:
        return sum(int(os.pread(fd, 128, 0).split()[1]) for fd in self._schedstats)

    def _ask(self, request: dict[str, Any], timeout_s: float, fds: list[int] | None = None) -> dict[str, Any]:
        """Send a request and wait for its answer, draining the worker's output meanwhile."""
        self._requests += 1
        request |= {"id": self._requests, "nonce": secrets.token_hex(8)}
        try:
            socket.send_fds(self._channel, [json.dumps(request).encode()], fds or [])
        except OSError as error:
            raise self._died() from error
        deadline = time.monotonic() + timeout_s
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise WorkerFailure("time_limit", f"no answer within {timeout_s:g} s", Status.TIMEOUT)
            ready = {fd for fd, _ in self._poll.poll(left * 1000)}
            if self._stop_fd in ready and self._stop():
                raise Cancelled
            if self._stdout in ready:
                self._drain()
            if self._channel.fileno() in ready and (answer := self._answer(request)):
                return answer

    def _answer(self, request: dict[str, Any]) -> dict[str, Any] | None:
        """The next packet if it answers `request`; anything else on the channel is dropped."""
        packet = b""
        with suppress(OSError):
            packet = self._channel.recv(MESSAGE_BYTES)
        if not packet:
            raise self._died()
        try:
            answer: Any = json.loads(packet)
        except (ValueError, RecursionError):
            return None
        if not _belongs(answer, request):
            return None
        if "error" in answer:
            raise _exception(answer)
        return answer

    def _drain(self) -> bool:
        """Take what the solution printed; False when there is nothing more now."""
        try:
            chunk = os.read(self._stdout, 65536)
        except BlockingIOError:
            return False
        self._text.add(chunk)
        if not chunk:
            with suppress(KeyError):
                self._poll.unregister(self._stdout)
        return bool(chunk)

    def output(self) -> str:
        """What the solution printed: it means nothing and is for people. It may print without end."""
        for _ in range(READS_AT_END):
            self._drain()
        return str(self._text)

    def alive(self) -> bool:
        """False once it has ended, however."""
        return started_at(self.pid) is not None

    def company(self) -> set[int]:
        """Processes that the solution started and that still run, orphans among them."""
        return self._zygote.company(self.pid)

    def _died(self) -> WorkerFailure:
        status = self.kill()
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            name = signal.Signals(number).name
            return WorkerFailure(f"signal_{number}", f"the solution's process was ended by {name}")
        code = os.waitstatus_to_exitcode(status)
        return WorkerFailure("exit_early", f"the solution ended its process with exit code {code}")

    def kill(self) -> int:
        """End the worker and its session, see it dead, and return its wait status."""
        if self.pid == 0:
            return 0
        self._channel.close()
        pid, self.pid = self.pid, 0
        if not _ends_soon(pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return self._zygote.reap(pid)

    def close(self) -> None:
        try:
            self.kill()
        finally:
            for fd in (self._stdout, self._stat, *self._schedstats):
                os.close(fd)


def _content(artifact: Path) -> int:
    """An anonymous file with a library's bytes, or with all files of a folder of sources as JSON."""
    if artifact.is_dir():
        files = {str(path.relative_to(artifact)): path for path in artifact.rglob("*") if path.is_file()}
        texts = {name: path.read_bytes().decode() for name, path in files.items()}
        content = json.dumps(texts).encode()
    else:
        content = artifact.read_bytes()
    fd = os.memfd_create("solution", os.MFD_CLOEXEC)
    with os.fdopen(os.dup(fd), "wb") as file:
        file.write(content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _exception(answer: dict[str, Any]) -> WorkerFailure:
    """What the worker says of its solution's failure: text to be shown, and bounded in every way."""
    detail = str(answer["error"])[:2000].encode("utf-8", "replace").decode()
    status = next((own for own in OWN_FAULTS if own == answer.get("status")), Status.RUNTIME_ERROR)
    return WorkerFailure("exception", detail, status)


def _belongs(answer: Any, request: dict[str, Any]) -> bool:
    """Whether a packet answers this request; a candidate may have written anything."""
    try:
        return (answer["id"], answer["nonce"]) == (request["id"], request["nonce"])
    except (TypeError, KeyError):
        return False


def _ends_soon(pid: int, patience_s: float = 0.05) -> bool:
    """Whether a hung-up worker is ending by itself, so that its own exit status is kept."""
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        if started_at(pid) is None:
            return True
        time.sleep(0.0005)
    return False


def _claim(answer: dict[str, Any], outer_ns: int) -> int:
    """The worker's own figure, if it can be one: a positive number not above what the judge saw."""
    claim = answer.get("cpu_ns")
    return min(max(claim, 1), outer_ns) if isinstance(claim, int) else outer_ns


def scalars_of(task: Task, inputs: dict[str, Any]) -> dict[str, Any]:
    """The inputs that travel with the call."""
    return {name: inputs[name] for name, spec in task.inputs.items() if spec.shape is None}


def _arguments(task: Task, inputs: Memory, outputs: Memory) -> list[dict[str, Any]]:
    """In the order of the function's signature: inputs, then outputs."""
    arguments: list[dict[str, Any]] = []
    for number, (specs, memory) in enumerate(((task.inputs, inputs), (task.outputs, outputs))):
        for name, spec in specs.items():
            argument: dict[str, Any] = {"name": name, "dtype": spec.dtype, "output": number == 1, "scalar": True}
            if name in memory.places:
                place = memory.places[name]
                argument |= {"scalar": False, "memory": number, "offset": place.offset, "shape": place.shape}
            arguments.append(argument)
    return arguments
