"""One built CUDA or HIP solution, loaded in this process and called on a device, for timers other than the judge's."""

import ctypes
import importlib
from pathlib import Path
from typing import Any

import torch

from mcp_server.folders import read_task
from toolkits.core.gpu import device_side
from toolkits.core.gpu.device_access import reach
from toolkits.core.judge.arena import Inputs, Outputs
from toolkits.core.judge.inputs import drawn, load_reference, secret_generator
from toolkits.core.schema import Task

C_SCALARS: dict[str, Any] = {"float32": ctypes.c_float, "float64": ctypes.c_double, "int32": ctypes.c_int32}


class KernelCall:
    """A solution with its tensors on a device; calling it launches."""

    def __init__(self, device: str, task: Path, library: Path, function: str, axes: dict[str, int]) -> None:
        self.board = device_side.opened(reach(device))
        self.driver = self.board.driver
        known = read_task(task)
        self._inputs, self._outputs = Inputs(known, axes), Outputs(known, axes)
        case = drawn(
            known, load_reference(known.folder, 60.0), axes, next(iter(known.distributions)), secret_generator()
        )
        for name, tensor in self._inputs.tensors.items():
            tensor.copy_(case.inputs[name])
        self._outputs.poison()
        hosts = [next(iter(memory.tensors.values())).untyped_storage() for memory in (self._inputs, self._outputs)]
        self.regions = self.board.regions([(host.data_ptr(), host.nbytes()) for host in hosts])
        self.regions.inputs.up()
        self.regions.outputs.up()
        self._function = ctypes.CDLL(str(library))[function]
        self._function.restype = None
        self._arguments = self._listed(known, axes, case.inputs)

    def __call__(self) -> None:
        self._function(*self._arguments)

    def wrote(self) -> bool:
        """Whether all outputs hold something other than poison now."""
        self.driver.synchronize()
        self.regions.outputs.down()
        return not self._outputs.unwritten() and self._outputs.guards_intact()

    def _listed(self, task: Task, axes: dict[str, int], values: dict[str, Any]) -> list[Any]:
        given: list[Any] = []
        for name, spec in task.inputs.items():
            if spec.shape is None:
                given.append(C_SCALARS[spec.dtype](values[name]))
            else:
                given.append(ctypes.c_void_p(self.regions.inputs.device + self._inputs.places[name].offset))
        outputs = self._outputs.places.values()
        given += [ctypes.c_void_p(self.regions.outputs.device + place.offset) for place in outputs]
        given += [ctypes.c_int64(axes[name]) for name in task.var_axes()]
        return [*given, ctypes.c_void_p(self.regions.stream)]


class Interface:
    """What triton's do_bench asks of torch.cuda, answered by the driver alone: torch need not know the device."""

    def __init__(self, call: KernelCall) -> None:
        self._call = call

    def synchronize(self) -> None:
        self._call.driver.synchronize()

    def Event(self, enable_timing: bool = True) -> "Moment":
        return Moment(self._call)


class Moment:
    """An event as torch has them."""

    def __init__(self, call: KernelCall) -> None:
        self._driver, self._stream, self.event = call.driver, call.regions.stream, call.driver.event()

    def record(self) -> None:
        self._driver.record(self.event, self._stream)

    def elapsed_time(self, other: "Moment") -> float:
        return self._driver.elapsed_ns(self.event, other.event) / 1e6


def as_triton_driver(call: KernelCall) -> None:
    """Make triton's benchmark time on this device and flush as it would."""
    stub: Any = importlib.import_module("toolkits.core.gpu.triton_stub").installed([("cuda", 90, 32)])
    size = max(call.regions.flush_bytes, 256 << 20 if not call.board.stand_in else 0)
    flushed = call.driver.allocate(size)
    stub.get_device_interface = lambda: Interface(call)
    stub.get_empty_cache_for_benchmark = lambda: torch.empty(1)

    def clear(cache: object) -> None:
        call.driver.fill(flushed, 0, size, call.regions.stream)

    stub.clear_cache = clear
