"""Binds a solution to twins of the judge's memory on a device. Runs in the worker, and knows no judge and no clock.

How a function of a library or of a Python module is called with given places is the worker's; this gives the places.
"""

import ctypes
import mmap
from collections.abc import Callable
from typing import Any

import torch

from toolkits.core.gpu import device_side, device_torch

Json = dict[str, Any]
Calls = dict[str, Callable[[Json], Json]]
OfLibrary = Callable[[Json, dict[str, Callable[..., Any]], list[int], list[Any]], Calls]
OfModule = Callable[[Json, Json, dict[str, Callable[..., Any]], list[tuple[Json, Any]]], Calls]


def probe(about: Json) -> Json:
    """What the device is, and whether torch can use it."""
    answer = device_side.probe(about)
    return answer | {"no_torch": device_torch.missing(stand_in=answer["facts"]["stand_in"])}


def open_device(load: Json) -> None:
    """Before the solution is loaded, which may make things of its own on the device."""
    if load["device"]:
        board = device_side.opened(load["device"])
        if load["loads_as"] == "python":
            device_torch.prepare(board.index, stand_in=board.stand_in)


def bind(
    load: Json,
    request: Json,
    entries: dict[str, Callable[..., Any]],
    memory: list[mmap.mmap],
    ways: tuple[OfLibrary, OfModule],
) -> Calls:
    """What the judge may ask of the solution on one workload; a stream is the last argument of a C function."""
    board = device_side.opened(load["device"])
    hosts = [torch.frombuffer(part, dtype=torch.uint8) for part in memory]
    regions = board.regions([(host.data_ptr(), len(host)) for host in hosts])
    twins = [twin for twin in (regions.inputs, regions.outputs, regions.workspace) if twin]
    bases = [twin.device for twin in twins]
    bound = device_side.Bound(board, regions, load.get("last_error", str))
    of_library, of_module = ways
    if load["loads_as"] == "native":
        return bound.steps(of_library(request, entries, bases, [ctypes.c_void_p(regions.stream)]))
    bound.within = lambda: device_torch.on_stream(regions.stream, board.index, stand_in=board.stand_in)
    values = [(item, _value(item, bases, board)) for item in request["arguments"]]
    return bound.steps(of_module(load, request, entries, values))


def _value(item: Json, bases: list[int], board: device_side.Board) -> Any:
    if item["scalar"]:
        return None
    address: int = bases[int(item["memory"])] + int(item["offset"])
    dtype: torch.dtype = getattr(torch, item["dtype"])
    return device_torch.tensor(address, item["shape"], dtype, board.index, stand_in=board.stand_in)
