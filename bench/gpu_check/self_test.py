"""Child process: every function of the driver layer on one device, and how long nothing seems to take; prints JSON.

    python -m bench.gpu_check.self_test DEVICE MODULE

MODULE holds a kernel `nothing` without arguments: a cubin, or for the stand-in a library.
"""

import ctypes
import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

from toolkits.core.gpu import device_side
from toolkits.core.gpu.device_access import reach
from toolkits.core.gpu.device_driver import DeviceError
from toolkits.core.gpu.device_regions import Regions

COUNT = 1 << 16
CALLS = 12


def moved(board: device_side.Board) -> bool:
    """Whether bytes come back from a device as they went there, after a copy and a fill of one half."""
    driver, there = board.driver, (ctypes.c_ubyte * COUNT)(*(at % 251 for at in range(COUNT)))
    back, stream = (ctypes.c_ubyte * COUNT)(), driver.stream()
    one, other = driver.allocate(COUNT), driver.allocate(COUNT)
    driver.to_device(one, ctypes.addressof(there), COUNT)
    driver.copy(other, one, COUNT, stream)
    driver.fill(other, 0xA5, COUNT // 2, stream)
    driver.synchronize()
    driver.to_host(ctypes.addressof(back), other, COUNT)
    for address in (one, other):
        driver.release(address)
    driver.end_stream(stream)
    return bytes(back) == b"\xa5" * (COUNT // 2) + bytes(there)[COUNT // 2 :]


def refused(board: device_side.Board) -> str:
    """The driver's word for an allocation of more than there is."""
    try:
        board.driver.allocate(1 << 60)
    except DeviceError as error:
        return error.code
    return ""


def nothing_us(board: device_side.Board, image: bytes) -> dict[str, float]:
    """An empty kernel between the judge's events, cold and warm, launched and from a graph: what none can be below."""
    driver = board.driver
    module = driver.load(image)
    function = driver.function(module, "nothing")
    host = (ctypes.c_ubyte * COUNT)()
    regions = board.regions([(ctypes.addressof(host), COUNT)] * 2)
    steps = device_side.Bound(board, regions, str).steps({"call": _launching(board, regions, function)})
    for at in range(CALLS):
        steps["stage"]({"at": at, "scalars": {}})
    found: dict[str, float] = {}
    for name, about in {"warm": (False, False), "cold": (True, False), "graph": (False, True)}.items():
        answer = steps["burst"]({"order": list(range(CALLS)), "cold": about[0], "graph": about[1]})
        found[name] = statistics.median(answer["device_ns"]) / 1e3
    steps["give_back"]({})
    driver.unload(module)
    for twin in (regions.inputs, regions.outputs):
        driver.release(twin.device)
    return found


def _launching(
    board: device_side.Board, regions: Regions, function: int
) -> Callable[[dict[str, object]], dict[str, object]]:
    def call(scalars: dict[str, object]) -> dict[str, object]:
        board.driver.launch(function, 1, 32, [], regions.stream)
        return {}

    return call


def main(device: str, module: str) -> None:
    board = device_side.opened(reach(device))
    before = board.driver.memory()[0]
    answer = {
        "facts": board.facts,
        "moved": moved(board),
        "refused": refused(board),
        "nothing_us": nothing_us(board, Path(module).read_bytes()),
        "copy_gb_s": device_side.probe({**reach(device), "measure": True})["copy_gb_s"],
        "leaked_bytes": before - board.driver.memory()[0],
    }
    print(json.dumps(answer))  # noqa: T201 - the answer


if __name__ == "__main__":
    main(*sys.argv[1:])
