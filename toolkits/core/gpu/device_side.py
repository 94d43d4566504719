"""The GPU side of a worker: a workload's buffers, and calls of the solution's function on them, on request.

What it says of times is a claim. Standard library only; how the function is called is the caller's business.
"""

import ctypes
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cache
from time import perf_counter_ns
from typing import Any

from toolkits.core.gpu.device_driver import DeviceError, Driver
from toolkits.core.gpu.device_regions import Regions, Twin

Json = dict[str, Any]
Step = Callable[[Json], Json]
PROBE_BYTES, PROBE_ROUNDS = 1 << 30, 8
LEAST_FLUSH_BYTES = 256 << 20
"""Writing so many takes longer than a launch from Python: what is launched waits, and the device never does."""


class InputModified(Exception):
    """The solution wrote to memory that is not its own to write."""


class LaunchFailed(Exception):
    """The vendor's runtime remembers an error of a launch."""


def cause(error: BaseException) -> str:
    """The judge's code for what went wrong on a device; empty: that is no business of this module."""
    if isinstance(error, InputModified):
        return "input_modified"
    return "launch_failed" if isinstance(error, LaunchFailed | DeviceError) else ""


class Board:
    """One device, open in this process."""

    def __init__(self, api: str, index: int, library: str) -> None:
        self.driver = Driver(api, library)
        self.index = index
        self.facts = self.driver.facts(index)
        self.driver.use(index)

    @property
    def stand_in(self) -> bool:
        return bool(self.facts["stand_in"])

    def regions(self, hosts: list[tuple[int, int]]) -> Regions:
        """Twins of host memories, address and size each: inputs, outputs, and a plan's workspace if there is one."""
        inputs, outputs, *workspace = (Twin(self.driver, host, size) for host, size in hosts)
        workspaces = workspace[0] if workspace else None
        return Regions(self.driver, inputs, outputs, workspaces, self.driver.stream(), flush_bytes(self.facts))


def flush_bytes(facts: Json) -> int:
    """What is written to empty the last-level cache: at least twice its size."""
    least = 1 << 20 if facts["stand_in"] else LEAST_FLUSH_BYTES
    return max(2 * int(facts["l2_bytes"]), least)


@cache
def board(api: str, index: int, library: str) -> Board:
    """The device of this process: opened once, never before the fork."""
    return Board(api, index, library)


def opened(device: Json) -> Board:
    """The device that a request names."""
    return board(device["api"], device["index"], device["library"])


class Bound:
    """One workload of one solution on a device: what the judge may ask of it."""

    def __init__(self, board: Board, regions: Regions, last_error: Callable[[], str]) -> None:
        self._board, self._driver, self._regions, self._last_error = board, board.driver, regions, last_error
        self._events = board.driver.event(), board.driver.event()
        self.within: Callable[[], AbstractContextManager[Any]] = nullcontext
        """What surrounds calls: torch's choice of a stream."""

    def steps(self, entries: dict[str, Step]) -> dict[str, Step]:
        """By name, as a worker is asked."""
        run = entries["call"]
        ours: dict[str, Step] = {
            "call": lambda scalars: self._checked(run, scalars),
            "stage": self._stage,
            "burst": lambda about: self._burst(run, about),
            "take": self._take,
            "give_back": self._give_back,
        }
        if "plan" in entries:
            ours["plan"] = lambda scalars: self._planned(entries["plan"], scalars)
        return ours

    def _checked(self, run: Step, scalars: Json) -> Json:
        """One call on what the judge wrote last; outputs and their guards go back to the judge."""
        self._driver.make_current()
        self._regions.inputs.up()
        self._regions.outputs.up()
        with self.within():
            answer, device_ns, host_ns = self._timed(lambda: run(scalars))
        self._regions.outputs.down()
        if not self._regions.inputs.unchanged():
            raise InputModified("the solution wrote to its inputs on the device")
        return answer | {"device_ns": device_ns, "host_ns": host_ns}

    def _planned(self, plan: Step, scalars: Json) -> Json:
        assert self._regions.workspace
        self._driver.make_current()
        self._regions.inputs.up()
        self._regions.workspace.up()
        with self.within():
            answer, _, _ = self._timed(lambda: plan(scalars))
        self._regions.workspace.down()
        return answer

    def _timed(self, call: Callable[[], Json]) -> tuple[Json, int, int]:
        """A call between two events, and then the end of all work on the device, whichever stream it is on."""
        start, stop = self._events
        if self._board.stand_in:  # it launches on the host, which must not overtake what is queued
            self._driver.synchronize()
        self._driver.record(start, self._regions.stream)
        began = perf_counter_ns()
        answer = call()
        host_ns = perf_counter_ns() - began
        self._driver.record(stop, self._regions.stream)
        self._driver.make_current()
        self._driver.synchronize()
        if error := self._last_error():
            raise LaunchFailed(f"a launch was refused: {error}")
        return answer, self._driver.elapsed_ns(start, stop), host_ns

    def _stage(self, about: Json) -> Json:
        self._driver.make_current()
        self._regions.stage(about["at"], about["scalars"])
        return {}

    def _burst(self, run: Step, about: Json) -> Json:
        """Calls one after the other, each on content of its own; the answers stay on the device."""
        self._driver.make_current()
        self._regions.ready()
        self._driver.forget_l2()
        graph = 0
        if about["graph"]:
            graph, why = self._captured(run, about["order"])
            if not graph:
                return {"no_graph": why}
        device, host = list[int](), list[int]()
        with self.within():  # once: to enter and leave it takes as long as a small kernel
            for at in about["order"]:
                self._regions.prepare(at, cold=about["cold"])
                _, device_ns, host_ns = self._timed(lambda at=at: self._run(run, at, graph))
                self._regions.keep(at)
                device.append(device_ns)
                host.append(host_ns)
        self._driver.synchronize()
        if graph:
            self._driver.end_executable(graph)
        return {"device_ns": device, "host_ns": host}

    def _run(self, run: Step, at: int, graph: int) -> Json:
        if not graph:
            return run(self._regions.contents[at][1])
        self._driver.launch_graph(graph, self._regions.stream)
        return {}

    def _captured(self, run: Step, order: list[int]) -> tuple[int, str]:
        """A graph of one call, or why there is none: scalars lie in it, so all contents must have the same."""
        scalars = [self._regions.contents[at][1] for at in order]
        if any(one != scalars[0] for one in scalars):
            return 0, "the scalars differ from call to call"
        self._regions.prepare(order[0], cold=False)
        self._driver.synchronize()
        self._driver.begin_capture(self._regions.stream)
        try:
            with self.within():
                run(scalars[0])
            return self._driver.end_capture(self._regions.stream), ""
        except (RuntimeError, OSError, ValueError, DeviceError) as error:  # torch and Triton refuse in words of theirs
            with suppress(DeviceError):
                self._driver.end_capture(self._regions.stream)
            return 0, str(error)
        finally:
            self._last_error()

    def _take(self, about: Json) -> Json:
        """One answer of the last burst, for the judge to look at."""
        self._driver.make_current()
        self._regions.outputs.down(self._regions.answers[about["at"]])
        return {}

    def _give_back(self, about: Json) -> Json:
        self._driver.make_current()
        self._driver.synchronize()
        self._regions.give_back()
        return {}


def last_error_of(library: ctypes.CDLL | None) -> Callable[[], str]:
    """What the runtime that is linked into a solution remembers, by the function that our build puts beside it."""
    function = getattr(library, "kernel_lab_last_error", None) if library else None
    if function is None:
        return str
    function.restype = ctypes.c_char_p
    return lambda: (function() or b"").decode("utf-8", "replace")


def probe(device: Json) -> Json:
    """What a device is, how much of its memory is free, and, where asked, how fast it copies."""
    it = opened(device)
    it.driver.make_current()
    free, _ = it.driver.memory()
    answer: Json = {"facts": it.facts, "free_bytes": free}
    return answer | {"copy_gb_s": _copy_speed(it, free)} if device.get("measure") else answer


def _copy_speed(it: Board, free: int) -> float:
    """Bytes read and written, 1e9 a second, of the best of some long copies: what no kernel exceeds by much."""
    driver, size = it.driver, min(PROBE_BYTES, free // 8, 1 << 25 if it.stand_in else PROBE_BYTES)
    one, other = driver.allocate(size), driver.allocate(size)
    stream, start, stop = driver.stream(), driver.event(), driver.event()
    best = 0.0
    for _ in range(PROBE_ROUNDS):
        driver.record(start, stream)
        driver.copy(one, other, size, stream)
        driver.record(stop, stream)
        driver.synchronize()
        best = max(best, 2 * size / max(driver.elapsed_ns(start, stop), 1))
    for address in (one, other):
        driver.release(address)
    driver.end_stream(stream)
    return best
