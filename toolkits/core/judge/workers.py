"""The judge's handle on one worker: start it, load and bind a solution, call it, kill it and see it dead.

How it is asked is the channel's, what a call cost the clocks', how much memory it may hold the ration's.
"""

import json
import os
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from toolkits.core.causes import Cause, signal_cause
from toolkits.core.errors import HarnessError
from toolkits.core.gpu.device_access import reach
from toolkits.core.judge.arena import Inputs, Memory, Outputs, Workspace
from toolkits.core.judge.channel import Cancelled, Channel, HungUp, WorkerFailure
from toolkits.core.judge.clocks import Clocks, Spent
from toolkits.core.judge.memory import Ration
from toolkits.core.judge.zygotes import Ticket, Zygote
from toolkits.core.process import started_at
from toolkits.core.schema import CompileResult, Solution, Task

__all__ = ["Cancelled", "Spent", "Worker", "WorkerFailure", "scalars_of"]
LOAD_TIMEOUT_S = 60.0


class Worker:
    """One forked process with one solution loaded."""

    _ration: Ration | None = None
    """Measured when the solution is loaded: a worker may have waited for one."""

    def __init__(self, zygote: Zygote, stop: Callable[[], bool], stop_fd: int) -> None:
        """Order one; it is on its way until `arrive`."""
        self._zygote = zygote
        self._channel = Channel(stop, stop_fd)
        self.pid = 0
        try:
            self._ticket: Ticket | None = zygote.order(self._channel.far_socket, self._channel.far_output)
        except BaseException:
            self._channel.close()
            raise
        finally:
            self._channel.give_away()
        self._outputs: dict[int, Outputs] = {}
        self._workspaces: dict[int, Workspace] = {}
        self._clocks: Clocks | None = None
        self.planned = False
        self.kernel_ns = 0

    def arrive(self) -> "Worker":
        """Wait until it runs; returns it. One that does not is still to be closed."""
        if ticket := self._ticket:
            self._ticket = None
            self.pid = self._zygote.pid_of(ticket)
            self._clocks = Clocks(self.pid, keeps_core=self._zygote.keeps_core())
        return self

    def load(
        self, solution: Solution, build: CompileResult, timeout_s: float = LOAD_TIMEOUT_S, *, trusted: bool = False
    ) -> None:
        """Load the entry function; the worker gets the build's content, not its place. Trusted: with its memory too."""
        assert build.artifact
        self.arrive()
        self.planned = bool(solution.plan_function)
        content = _content(build.artifact)
        request = {
            "op": "load",
            "loads_as": build.loads_as,
            "environment": build.environment,
            "file": build.host or solution.entry_file,
            "function": solution.entry_function,
            "plan": solution.plan_function,
            "destination_passing_style": solution.destination_passing_style,
            "device": reach(build.device) if build.device else None,
        }
        try:
            self.meet(trusted=trusted)
            self._ask(request, timeout_s, [content])
        except HungUp as error:
            raise self._died() from error
        finally:
            os.close(content)

    def meet(self, *, trusted: bool = False) -> None:
        """Take its first packet, which comes before any solution. HungUp: it never was ready."""
        self._ration = None if trusted else Ration()
        self._channel.meet()

    def bind(
        self,
        slot: int,
        task: Task,
        axes: dict[str, int],
        inputs: Inputs,
        outputs: Outputs,
        workspace: Workspace | None = None,
    ) -> None:
        """Give the worker a workload's memory; the workspace where it plans."""
        request = {
            "op": "bind",
            "slot": slot,
            "arguments": _arguments(task, inputs, outputs),
            "axes": [axes[name] for name in task.var_axes()],
        }
        memory: list[Memory] = [inputs, outputs]
        if workspace and task.plan:
            request |= {"plan": task.plan.inputs, "workspace": workspace.offset}
            memory.append(workspace)
            self._workspaces[slot] = workspace
        request["sizes"] = [part.size for part in memory]
        self._ask(request, LOAD_TIMEOUT_S, [part.fd for part in memory])
        self._outputs[slot] = outputs

    def workspace(self, slot: int) -> Workspace | None:
        """What its plan writes, where it has one."""
        return self._workspaces.get(slot)

    def outputs(self, slot: int) -> Outputs:
        return self._outputs[slot]

    def bound(self, slot: int) -> bool:
        return slot in self._outputs

    def call(self, slot: int, scalars: dict[str, Any], timeout_s: float) -> Spent:
        """Run the function once on what the memory holds."""
        return self._timed("call", slot, scalars, timeout_s)

    def on_device(self, what: str, slot: int, about: dict[str, Any], timeout_s: float) -> tuple[dict[str, Any], int]:
        """A step of device_side.py: what the worker says of it, and the judge's wall clock in ns."""
        started = time.perf_counter_ns()
        answer = self._ask({"op": what, "slot": slot, "scalars": about}, timeout_s)
        return answer, time.perf_counter_ns() - started

    def plan(self, slot: int, scalars: dict[str, Any], timeout_s: float) -> Spent:
        """Have it prepare the next call, from what a plan may read."""
        return self._timed("plan", slot, scalars, timeout_s)

    def _timed(self, what: str, slot: int, scalars: dict[str, Any], timeout_s: float) -> Spent:
        """The judge prepares the memory, on the same core: nothing is asked of the worker that no clock counts."""
        request = {"op": what, "slot": slot, "scalars": scalars}
        assert self._clocks
        try:
            spent = self._clocks.spent(lambda: self._ask(request, timeout_s))
        except OSError as error:
            raise self._died() from error
        self._look()
        self.kernel_ns += spent.cpu_ns
        return spent

    def _ask(self, request: dict[str, Any], timeout_s: float, fds: list[int] | None = None) -> dict[str, Any]:
        try:
            return self._channel.ask(request, timeout_s, fds or [], self._look)
        except HungUp as error:
            raise self._died() from error

    def _look(self) -> None:
        """End a worker that holds too much memory, before the machine suffers."""
        if self._ration and self.pid and self._ration.due() and self._ration.in_doubt(self._zygote.stored(self.pid)):
            try:
                family = {self.pid, *(self.company() if self.may_have_company() else ())}
                why = self._ration.excess(family, self._zygote.stored(self.pid))
            except HarnessError:
                self.kill()
                if hidden := self._ration.hidden():
                    raise WorkerFailure(Cause.OOM, hidden) from None
                raise
            if why:
                self.kill()
                raise WorkerFailure(Cause.OOM, why)

    def output(self) -> str:
        """What the solution printed: it means nothing and is for people. It may print without end."""
        return self._channel.output()

    def alive(self) -> bool:
        """False once it has ended, however."""
        return started_at(self.pid) is not None

    def may_have_company(self) -> bool:
        """False where the filter rules it out: looking for processes takes longer than many a kernel."""
        return not self._channel.guard.made_none

    def company(self) -> set[int]:
        """Processes that the solution started and that still run, orphans among them."""
        return self._zygote.company(self.pid)

    def permit_processes(self) -> None:
        """The solution may start processes, as torch.compile does; so it is until `forbid_processes`."""
        self._channel.guard.permit()

    def forbid_processes(self) -> None:
        """None can be started any more; which there are by now `company` knows."""
        self._channel.guard.forbid()

    def asked_for_process(self) -> bool:
        """Whether one was wanted since `forbid_processes`."""
        return self._channel.guard.refused() > 0

    def _died(self) -> WorkerFailure:
        """What its end looks like; memory as the cause only where it is known."""
        full = self._zygote.full(self.pid) if self.pid else []
        status = self.kill()
        if not os.WIFSIGNALED(status):
            code = os.waitstatus_to_exitcode(status)
            return WorkerFailure(Cause.EXIT_EARLY, f"the solution ended its process with exit code {code}")
        number = os.WTERMSIG(status)
        ended = f"the solution's process was ended by {signal.Signals(number).name}"
        if number == signal.SIGABRT and "std::bad_alloc" in self.output():
            return WorkerFailure(Cause.OOM, f"{ended}: it asked for more memory than it may have (std::bad_alloc)")
        if number == signal.SIGKILL and self._ration and self._ration.killed_by_kernel():
            return WorkerFailure(Cause.OOM, f"{ended}: this machine's memory was used up")
        if number == signal.SIGBUS and full:
            ended += f": {' and '.join(full)}, where its files lie, can take no more"
        return WorkerFailure(signal_cause(number), ended)

    def end(self) -> None:
        """Have it killed, on any core, since the judge has other work on its own; `close` sees it dead."""
        if not self.pid:
            return
        with suppress(OSError):
            os.sched_setaffinity(self.pid, os.sched_getaffinity(os.getppid()))
        self._zygote.end(self.pid)

    def kill(self) -> int:
        """End the worker and its session, see it dead, and return its wait status."""
        if self.pid == 0:
            return 0
        self._channel.hang_up()
        pid, self.pid = self.pid, 0
        if not _ends_soon(pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return self._zygote.reap(pid)

    def close(self) -> None:
        try:
            self.arrive()
            self.kill()
        finally:
            self._channel.close()
            if self._clocks:
                self._clocks.close()


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


def _ends_soon(pid: int, patience_s: float = 0.05) -> bool:
    """Whether a hung-up worker is ending by itself, so that its own exit status is kept."""
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    ended = select.select([process], [], [], patience_s)[0]
    os.close(process)
    return bool(ended)


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
