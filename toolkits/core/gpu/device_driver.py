"""A GPU driver through ctypes: memory, streams, events, graphs, modules. CUDA and HIP in one shape.

Standard library only, since workers may run in another Python. It holds the primary context, as the vendors' runtimes
and torch do, so that their streams and pointers are its own. Knows no task and no solution.
"""

import ctypes
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from toolkits.core.gpu.device_names import APIS, STAND_IN

Json = dict[str, Any]
ANY_THREAD = 2
"""Of a capture: what other threads do meanwhile is no error."""
_NAME_BYTES = 256
_PROPERTIES_BYTES = 16_384
"""More than any version of the struct has."""


class DeviceError(Exception):
    """A driver refused something, or a kernel failed; `code` is the driver's name for it."""

    def __init__(self, step: str, code: str) -> None:
        super().__init__(f"{step}: {code}")
        self.step, self.code = step, code


class Driver:
    """One driver library, and after `use` one device of it."""

    def __init__(self, api: str, library: str) -> None:
        self.names = APIS[api]
        self._library = ctypes.CDLL(library)
        self._current: ctypes.c_void_p | ctypes.c_int = ctypes.c_int(0)
        self._call("init", ctypes.c_uint(0))

    def _call(self, step: str, *arguments: Any) -> None:
        name = self.names.functions[step]
        try:
            function = getattr(self._library, name)
        except AttributeError:
            raise DeviceError(step, f"this driver has no {name}: it is too old") from None
        status: int = function(*arguments)
        if status:
            raise DeviceError(step, self._error(status))

    def _error(self, status: int) -> str:
        function = getattr(self._library, self.names.functions["error"])
        if self.names.api == "hip":
            function.restype = ctypes.c_char_p
            said: bytes | None = function(ctypes.c_int(status))
        else:
            text = ctypes.c_char_p()
            function(ctypes.c_int(status), ctypes.byref(text))
            said = text.value
        return said.decode("utf-8", "replace") if said else f"error {status}"

    # --- devices ----------------------------------------------------------------------------------------------------

    def count(self) -> int:
        number = ctypes.c_int()
        self._call("count", ctypes.byref(number))
        return number.value

    def facts(self, index: int) -> Json:
        """What a device is, without a context on it."""
        name, total = ctypes.create_string_buffer(_NAME_BYTES), ctypes.c_size_t()
        device = self._device(index)
        self._call("name", name, ctypes.c_int(_NAME_BYTES), device)
        self._call("total", ctypes.byref(total), device)
        found = {what: self._attribute(number, device) for what, number in self.names.attributes.items()}
        text = name.value.decode("utf-8", "replace")
        return {
            "name": text,
            "architecture": self._architecture(index, found),
            "memory_bytes": total.value,
            "stand_in": text.startswith(STAND_IN),
            **{what: found[what] for what in ("multiprocessors", "clock_khz", "l2_bytes")},
        }

    def _device(self, index: int) -> ctypes.c_int:
        """CUDA numbers its handles itself."""
        handle = ctypes.c_int(index)
        if "device" in self.names.functions:
            self._call("device", ctypes.byref(handle), ctypes.c_int(index))
        return handle

    def _attribute(self, number: int, device: ctypes.c_int) -> int:
        value = ctypes.c_int()
        self._call("attribute", ctypes.byref(value), ctypes.c_int(number), device)
        return value.value

    def _architecture(self, index: int, found: dict[str, int]) -> str:
        if "properties" not in self.names.functions:
            return f"sm_{found['major']}{found['minor']}"
        # The name stands somewhere in a struct that grows with each version.
        struct = ctypes.create_string_buffer(_PROPERTIES_BYTES)
        self._call("properties", struct, ctypes.c_int(index))
        match = re.search(rb"gfx[0-9a-f]{3,}", struct.raw)
        return match[0].decode() if match else ""

    def use(self, index: int) -> None:
        """Make this thread's work go to a device."""
        if "retain" in self.names.functions:
            self._current = ctypes.c_void_p()
            self._call("retain", ctypes.byref(self._current), self._device(index))
        else:
            self._current = ctypes.c_int(index)
        self.make_current()

    def make_current(self) -> None:
        """The same again: whoever ran meanwhile may have chosen another."""
        self._call("current", self._current)

    def synchronize(self) -> None:
        """Wait for all streams of the device; raises what any kernel before came to."""
        self._call("synchronize")

    def forget_l2(self) -> None:
        """Give lines of the L2 that are kept for somebody back to everybody; not every device can keep some."""
        if "forget_l2" in self.names.functions:
            with suppress(DeviceError):
                self._call("forget_l2")

    # --- memory -----------------------------------------------------------------------------------------------------

    def memory(self) -> tuple[int, int]:
        """Bytes that are free, and all."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._call("free_memory", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def allocate(self, count: int) -> int:
        address = ctypes.c_void_p()
        self._call("allocate", ctypes.byref(address), ctypes.c_size_t(max(count, 1)))
        return address.value or 0

    def release(self, address: int) -> None:
        self._call("release", ctypes.c_void_p(address))

    def to_device(self, device: int, host: int, count: int) -> None:
        self._call("to_device", ctypes.c_void_p(device), ctypes.c_void_p(host), ctypes.c_size_t(count))

    def to_host(self, host: int, device: int, count: int) -> None:
        self._call("to_host", ctypes.c_void_p(host), ctypes.c_void_p(device), ctypes.c_size_t(count))

    def copy(self, to: int, source: int, count: int, stream: int) -> None:
        self._call(
            *("copy", ctypes.c_void_p(to), ctypes.c_void_p(source), ctypes.c_size_t(count), ctypes.c_void_p(stream))
        )

    def fill(self, address: int, byte: int, count: int, stream: int) -> None:
        self._call(
            *("fill", ctypes.c_void_p(address), ctypes.c_ubyte(byte), ctypes.c_size_t(count), ctypes.c_void_p(stream))
        )

    # --- streams, events, graphs ------------------------------------------------------------------------------------

    def stream(self) -> int:
        """One that the default stream waits for: a kernel launched without a stream is then in order with ours."""
        return self._made("stream", ctypes.c_uint(0))

    def end_stream(self, stream: int) -> None:
        self._call("end_stream", ctypes.c_void_p(stream))

    def event(self) -> int:
        return self._made("event", ctypes.c_uint(0))

    def end_event(self, event: int) -> None:
        self._call("end_event", ctypes.c_void_p(event))

    def record(self, event: int, stream: int) -> None:
        self._call("record", ctypes.c_void_p(event), ctypes.c_void_p(stream))

    def elapsed_ns(self, start: int, stop: int) -> int:
        """Between two events that have passed, by the device's clock."""
        ms = ctypes.c_float()
        self._call("elapsed", ctypes.byref(ms), ctypes.c_void_p(start), ctypes.c_void_p(stop))
        return round(ms.value * 1e6)

    def begin_capture(self, stream: int) -> None:
        self._call("begin_capture", ctypes.c_void_p(stream), ctypes.c_int(ANY_THREAD))

    def end_capture(self, stream: int) -> int:
        """An executable graph of what was put on the stream since."""
        graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
        self._call("end_capture", ctypes.c_void_p(stream), ctypes.byref(graph))
        if not graph:
            raise DeviceError("end_capture", "the capture was broken off")
        try:
            self._call("instantiate", ctypes.byref(executable), graph, ctypes.c_ulonglong(0))
        finally:
            self._call("end_graph", graph)
        return executable.value or 0

    def launch_graph(self, executable: int, stream: int) -> None:
        self._call("launch_graph", ctypes.c_void_p(executable), ctypes.c_void_p(stream))

    def end_executable(self, executable: int) -> None:
        self._call("end_executable", ctypes.c_void_p(executable))

    # --- modules ----------------------------------------------------------------------------------------------------

    def load(self, image: bytes) -> int:
        """A cubin, a fatbin, PTX or an AMD code object."""
        module = ctypes.c_void_p()
        self._call("load", ctypes.byref(module), ctypes.c_char_p(image))
        return module.value or 0

    def unload(self, module: int) -> None:
        self._call("unload", ctypes.c_void_p(module))

    def function(self, module: int, name: str) -> int:
        function = ctypes.c_void_p()
        self._call("function", ctypes.byref(function), ctypes.c_void_p(module), ctypes.c_char_p(name.encode()))
        return function.value or 0

    def launch(self, function: int, blocks: int, threads: int, arguments: Sequence[Any], stream: int) -> None:
        """A kernel over a line of blocks; arguments are ctypes values."""
        pointers = (ctypes.c_void_p * len(arguments))(*(ctypes.addressof(one) for one in arguments))
        sizes = [ctypes.c_uint(size) for size in (blocks, 1, 1, threads, 1, 1, 0)]
        self._call("launch", ctypes.c_void_p(function), *sizes, ctypes.c_void_p(stream), pointers, None)

    def _made(self, step: str, flags: ctypes.c_uint) -> int:
        handle = ctypes.c_void_p()
        self._call(step, ctypes.byref(handle), flags)
        return handle.value or 0
