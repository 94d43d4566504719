"""Runs one solution's function on shared memory, on request. Knows no expected value, reference, seed or verdict.

Started only by fork from the zygote. What it says is a claim: the judge looks at the memory and at its own clocks.
Messages are JSON, one a packet; a reply carries the request's id and nonce, and an error may say that memory ran out.
"""

import ctypes
import importlib.util
import json
import mmap
import os
import socket
import sys
import traceback
import warnings
from array import array
from collections.abc import Callable, Sequence
from errno import ENOMEM
from pathlib import Path
from time import process_time_ns
from typing import Any

import torch

from toolkits.core.gpu import device_side
from toolkits.core.gpu.device_driver import DeviceError
from toolkits.core.judge import gpu_worker

MESSAGE_BYTES = 128_000
DETAIL_CHARS = 1500
DTYPES: dict[str, torch.dtype] = {
    "float32": torch.float32,
    "float64": torch.float64,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "int32": torch.int32,
    "int64": torch.int64,
    "bool": torch.bool,
}
_C_SCALARS: dict[str, Any] = {
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
    "int32": ctypes.c_int32,
    "int64": ctypes.c_int64,
    "bool": ctypes.c_uint8,
    "float16": ctypes.c_uint16,
    "bfloat16": ctypes.c_uint16,
}
Json = dict[str, Any]
Call = Callable[[Json], Json]
"""Runs a function once on a bound workload, with new scalars if given; an empty answer is a claim of success."""
Entries = dict[str, Callable[..., Any]]
"""The solution's functions by what is asked: `call`, and `plan` where it has one."""


def serve(channel: socket.socket) -> None:
    """Answer requests until the judge hangs up."""
    # Inputs are read-only on purpose; torch warns at each such buffer.
    warnings.filterwarnings("ignore", "The given buffer is not writable")
    entries: Entries = {}
    load: Json = {}
    memory: dict[int, list[mmap.mmap]] = {}
    calls: dict[int, dict[str, Call]] = {}
    buffer = bytearray(MESSAGE_BYTES)
    room = socket.CMSG_LEN(3 * array("i").itemsize)
    while True:
        size, messages, _, _ = channel.recvmsg_into([buffer], room)
        if not size:
            return
        request: Json = json.loads(buffer[:size])
        fds = array("i", b"".join(content for _, _, content in messages)).tolist()
        answer: Json = {}
        # The outermost frame: whatever a candidate raises is an answer, not the end of the worker.
        try:
            if request["op"] == "load":
                load, entries = request, _load(request, fds[0])
            elif request["op"] == "probe":
                answer = gpu_worker.probe(request["scalars"])
            elif request["op"] == "bind":
                memory[request["slot"]] = _mapped(fds, request["sizes"])
                calls[request["slot"]] = _bind(load, request, entries, memory[request["slot"]])
            else:
                started = process_time_ns()
                answer = calls[request["slot"]][request["op"]](request["scalars"])
                answer["cpu_ns"] = process_time_ns() - started
        except BaseException as error:
            answer = {"error": _describe(error), "cause": "oom" if _wants_memory(error) else device_side.cause(error)}
        channel.send(json.dumps(answer | {"id": request["id"], "nonce": request["nonce"]}).encode())


def _wants_memory(error: BaseException) -> bool:
    """Torch says it in words only."""
    if isinstance(error, OSError):
        return error.errno == ENOMEM
    if isinstance(error, MemoryError):
        return True
    words = ("can't allocate memory", "out of memory", "OUT_OF_MEMORY", "OutOfMemory")  # torch's, and the drivers'
    return isinstance(error, RuntimeError | DeviceError) and any(word in str(error) for word in words)


def _describe(error: BaseException) -> str:
    """Type, message and the last frame, bounded."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}: {error}{where}"[:DETAIL_CHARS]


def _load(request: Json, content: int) -> Entries:
    """The solution's functions, from a descriptor: a library, or the text of every source file."""
    os.environ.update(request["environment"])
    gpu_worker.open_device(request)
    names = {"call": request["function"]} | ({"plan": request["plan"]} if request["plan"] else {})
    if request["loads_as"] == "native":
        library = ctypes.CDLL(f"/proc/self/fd/{content}")
        os.close(content)
        entries = {what: library[name] for what, name in names.items()}
        for function in entries.values():
            function.restype = None
        request["last_error"] = device_side.last_error_of(library)
        return entries
    folder = Path.cwd() / "solution"
    with os.fdopen(content, encoding="utf-8") as file:
        _write_files(folder, json.load(file))
    sys.path.insert(0, str(folder))
    spec = importlib.util.spec_from_file_location("solution", folder / request["file"])
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["solution"] = module
    spec.loader.exec_module(module)
    return {what: getattr(module, name) for what, name in names.items()}


def _write_files(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")


def _mapped(fds: list[int], sizes: list[int]) -> list[mmap.mmap]:
    """Inputs to read, outputs and a plan's workspace to write."""
    access = [mmap.PROT_READ] + [mmap.PROT_READ | mmap.PROT_WRITE] * (len(fds) - 1)
    maps = [mmap.mmap(fd, size, prot=prot) for fd, size, prot in zip(fds, sizes, access, strict=True)]
    for fd in fds:
        os.close(fd)
    return maps


def _bind(load: Json, request: Json, entries: Entries, memory: list[mmap.mmap]) -> dict[str, Call]:
    """Fix the arguments once, so that a call costs nothing but the call."""
    if load["device"]:
        return gpu_worker.bind(load, request, entries, memory, (_bind_native, _bind_python))
    if load["loads_as"] == "native":
        bases = [torch.frombuffer(part, dtype=torch.uint8).data_ptr() for part in memory]
        return _bind_native(request, entries, bases)
    return _bind_python(load, request, entries, [(item, _value(item, memory)) for item in request["arguments"]])


def _bind_native(request: Json, entries: Entries, bases: list[int], stream: Sequence[Any] = ()) -> dict[str, Call]:
    items: list[Json] = request["arguments"]
    sizes: list[int] = request["axes"]
    last: list[Any] = [*(ctypes.c_int64(size) for size in sizes), *stream]
    if "plan" not in entries:
        return {"call": _native(entries["call"], items, bases, last)}
    last.insert(0, ctypes.c_void_p(bases[2] + int(request["workspace"])))
    planned = [item for name in request["plan"] for item in items if item["name"] == name]
    named = {"call": items, "plan": planned}
    return {what: _native(entry, named[what], bases, last) for what, entry in entries.items()}


def _native(entry: Callable[..., Any], items: list[Json], bases: list[int], last: list[Any]) -> Call:
    arguments: list[Any] = []
    for item in items:
        if item["scalar"]:
            arguments.append(_C_SCALARS[item["dtype"]]())
        else:
            arguments.append(ctypes.c_void_p(bases[int(item["memory"])] + int(item["offset"])))
    arguments += last

    def call(scalars: Json) -> Json:
        for place, item in enumerate(items):
            if item["name"] in scalars:
                arguments[place].value = _c_scalar(item["dtype"], scalars[item["name"]])
        entry(*arguments)
        return {}

    return call


def _c_scalar(dtype: str, value: Any) -> Any:
    """16-bit floats cross as their bits, as `task.h` says."""
    if dtype in ("float16", "bfloat16"):
        return int(torch.tensor(value, dtype=DTYPES[dtype]).view(torch.int16).item()) & 0xFFFF
    return value


def _bind_python(load: Json, request: Json, entries: Entries, values: list[tuple[Json, Any]]) -> dict[str, Call]:
    entry = entries["call"]
    left: list[Any] = []
    arguments = [value for _, value in values]
    names = [item["name"] for item, _ in values]
    count = sum(not item["output"] for item, _ in values)
    outputs = [(item["name"], value) for item, value in values if item["output"]]

    def call(scalars: Json) -> Json:
        for name, value in scalars.items():
            arguments[names.index(name)] = value
        if load["destination_passing_style"]:
            entry(*left, *arguments)
            return {}
        return _returned(entry(*left, *arguments[:count]), outputs)

    def plan(scalars: Json) -> Json:
        for name, value in scalars.items():
            arguments[names.index(name)] = value
        left[:] = [entries["plan"](*(arguments[names.index(name)] for name in request["plan"]))]
        return {}

    return {"call": call, "plan": plan}


def _value(item: Json, memory: list[mmap.mmap]) -> Any:
    if item["scalar"]:
        return None
    count = 1
    for size in item["shape"]:
        count *= size
    if count == 0:
        return torch.empty(item["shape"], dtype=DTYPES[item["dtype"]])
    flat = torch.frombuffer(memory[item["memory"]], dtype=DTYPES[item["dtype"]], count=count, offset=item["offset"])
    return flat.reshape(item["shape"])


def _returned(result: Any, outputs: list[tuple[str, torch.Tensor]]) -> Json:
    """Copy returned tensors to where the judge looks; type, dtype and shape must be exact."""
    tensors: list[Any] = [*result] if isinstance(result, (tuple, list)) else [result]  # pyright: ignore[reportUnknownVariableType]
    if len(tensors) != len(outputs):
        return {"status": "INCORRECT_SHAPE", "error": f"returned {len(tensors)} values, the task has {len(outputs)}"}
    for got, (name, want) in zip(tensors, outputs, strict=True):
        if type(got) is not torch.Tensor:
            return {"status": "INCORRECT_DTYPE", "error": f"{name} is a {type(got).__name__}, not a torch.Tensor"}
        if got.dtype != want.dtype:
            return {"status": "INCORRECT_DTYPE", "error": f"{name} is {got.dtype}, the task says {want.dtype}"}
        if got.shape != want.shape:
            shapes = f"{list(got.shape)}, the task says {list(want.shape)}"
            return {"status": "INCORRECT_SHAPE", "error": f"{name} has shape {shapes}"}
        want.copy_(got)
    return {}
