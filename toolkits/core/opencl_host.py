"""Host side of an OpenCL solution: builds its program once, then launches its kernels on the caller's own memory.

Copied beside the solution's sources, with launch.json; runs where nothing but torch and pyopencl is. One thread: PoCL's
`basic` device executes a kernel inside the call that waits for it.
"""

import ctypes
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
os.environ["POCL_DEVICES"] = "basic"
os.environ.setdefault("POCL_CACHE_DIR", str(Path.cwd() / "pocl"))

import pyopencl as cl  # noqa: E402  PoCL reads the two when it is loaded

Json = dict[str, Any]
NUMBERS: Mapping[str, Callable[[Any], Any]] = {
    "char": ctypes.c_int8,
    "uchar": ctypes.c_uint8,
    "short": ctypes.c_int16,
    "ushort": ctypes.c_uint16,
    "int": ctypes.c_int32,
    "uint": ctypes.c_uint32,
    "long": ctypes.c_int64,
    "ulong": ctypes.c_uint64,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
}
"""Scalars by the type that a kernel declares."""
UNKNOWN_CPU = b"generic\0"
CPUS = (("skylake-avx512", {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"}), ("haswell", {"avx2", "fma"}))
"""What PoCL's kernel libraries for AVX-512 and AVX2 were built for: another name would not agree with them."""


def device() -> Any:
    """The CPU as OpenCL has it."""
    for platform in cl.get_platforms():
        for found in platform.get_devices():
            if found.type & cl.device_type.CPU:
                if platform.name.startswith("Portable"):
                    _name_cpu(found)
                return found
    raise RuntimeError("no OpenCL platform here has a CPU device: pip install pocl-binary-distribution")


def _name_cpu(found: Any) -> None:
    """Tell PoCL what CPU this is: its LLVM calls one that is younger than itself `generic` and then refuses that name.

    The name is a string of its own on the heap, which a field of the device's record points to.
    """
    name = next((name for name, needed in CPUS if needed <= _features()), "")
    place = _place_of_name(found) if name else 0
    if place:
        ctypes.memmove(place, name.encode() + b"\0", len(name) + 1)


def _place_of_name(found: Any) -> int:
    """Where PoCL keeps `generic`; 0 where it does not, or where there is no room for another name."""
    lines = [line.split() for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()]
    spans = [tuple(int(end, 16) for end in line[0].split("-")) for line in lines if line[1] == "rw-p"]
    libc = ctypes.CDLL(None)
    libc.malloc_usable_size.restype = ctypes.c_size_t
    for word in (ctypes.c_uint64 * 128).from_address(found.int_ptr):
        inside = any(first <= word and word + 16 <= end for first, end in spans)
        if inside and ctypes.string_at(word, len(UNKNOWN_CPU)) == UNKNOWN_CPU:
            return word if libc.malloc_usable_size(ctypes.c_void_p(word)) >= 16 else 0
    return 0


def _features() -> set[str]:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    return {word for line in lines if line.startswith("flags") for word in line.split()}


def program(context: Any, folder: Path, launch: Json) -> Any:
    """The solution's program, built; messages name its files."""
    text = f'#line 1 "{launch["file"]}"\n' + (folder / launch["file"]).read_text(encoding="utf-8")
    return cl.Program(context, text).build([*launch["flags"], "-cl-kernel-arg-info", "-I", str(folder)], cache_dir=None)


class Host:
    """The built program and, for each set of arguments, its launches made ready."""

    def __init__(self, folder: Path, launch: Json) -> None:
        self._launch = launch
        found = device()
        self._context = cl.Context([found])
        self._queue = cl.CommandQueue(self._context)
        self._program = program(self._context, folder, launch)
        self._ready: dict[tuple[object, ...], list[tuple[Any, tuple[int, ...], tuple[int, ...] | None]]] = {}
        self._held: list[Any] = []

    def run(self, *arguments: Any) -> None:
        """Every launch in order, to its end."""
        # The shape too: memory that was given back may come again as something else.
        key = tuple((a.data_ptr(), a.shape) if hasattr(a, "data_ptr") else a for a in arguments)
        launches = self._ready.get(key)
        if launches is None:
            launches = self._ready[key] = self._made_ready(arguments)
        for kernel, global_size, local_size in launches:
            cl.enqueue_nd_range_kernel(self._queue, kernel, global_size, local_size)
        self._queue.finish()

    def _made_ready(self, arguments: tuple[Any, ...]) -> list[tuple[Any, tuple[int, ...], tuple[int, ...] | None]]:
        named = dict(zip(self._launch["names"], arguments, strict=True))
        sizes = dict(self._launch["constants"])
        for axis, (tensor, dimension) in self._launch["axes"].items():
            sizes[axis] = int(named[tensor].shape[dimension])
        values = [*map(self._value, arguments), *(sizes[axis] for axis in self._launch["axes"])]
        ready: list[tuple[Any, tuple[int, ...], tuple[int, ...] | None]] = []
        for one in self._launch["launches"]:
            global_size = tuple(size_of(text, sizes) for text in one["global_size"])
            local_size = tuple(size_of(text, sizes) for text in one["local_size"]) or None
            if all(global_size):
                ready.append((self._kernel(one["kernel"], values), global_size, local_size))
        return ready

    def _kernel(self, name: str, values: list[Any]) -> Any:
        """A kernel object of its own, with its arguments set: OpenCL holds no buffer for it."""
        kernel = cl.Kernel(self._program, name)
        for place, value in enumerate(values):
            if isinstance(value, (int, float)):
                value = NUMBERS[str(kernel.get_arg_info(place, cl.kernel_arg_info.TYPE_NAME))](value)
            kernel.set_arg(place, value)
        return kernel

    def _value(self, argument: Any) -> Any:
        """A tensor's own memory as a buffer, no copy; a scalar as it is."""
        if not hasattr(argument, "data_ptr"):
            return argument
        if argument.numel() == 0:
            return None
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
        buffer = cl.Buffer(self._context, flags, hostbuf=_content(argument))
        self._held.append(buffer)
        return buffer


def _content(argument: Any) -> Any:
    """The bytes of a torch tensor, or of what brings its own."""
    if hasattr(argument, "content"):
        return argument.content
    import torch

    return argument.reshape(-1).view(torch.uint8).numpy()


def size_of(text: str, sizes: Mapping[str, int]) -> int:
    """An axis expression, which the toolkit has checked."""
    return int(eval(text, {"__builtins__": {}}, dict(sizes)))


def _loaded() -> None:
    """Where launch.json lies beside this file, the solution's function gets its name."""
    if (HERE / "launch.json").is_file():
        launch = json.loads((HERE / "launch.json").read_text(encoding="utf-8"))
        globals()[launch["function"]] = Host(HERE, launch).run


_loaded()
