"""Child process: one kernel timed by triton's do_bench and by plain events, or only called; prints JSON.

    python -m bench.gpu_check.timers DEVICE TASK LIBRARY FUNCTION AXES [--calls N]

With --calls it makes so many calls and no figure: what profilers and sanitizers run.
"""

import argparse
import importlib
import json
from pathlib import Path

from bench.gpu_check.kernel_call import KernelCall, as_triton_driver

LAUNCHES, ROUNDS = 20, 7
WARM_UP_MS, REPEAT_MS = 10, 50


def plain_events_us(call: KernelCall) -> float:
    """Launches one after the other between two events, over their number: warm, no flush; the best of some rounds."""
    start, stop = call.driver.event(), call.driver.event()
    found: list[float] = []
    for _ in range(ROUNDS):
        call.driver.synchronize()
        call.driver.record(start, call.regions.stream)
        for _ in range(LAUNCHES):
            call()
        call.driver.record(stop, call.regions.stream)
        call.driver.synchronize()
        found.append(call.driver.elapsed_ns(start, stop) / LAUNCHES / 1e3)
    return sorted(found)[len(found) // 2]


def do_bench_us(call: KernelCall) -> float:
    """By triton.testing, its cache flushed before each call: the median."""
    as_triton_driver(call)
    testing = importlib.import_module("triton.testing")
    return float(testing.do_bench(call, warmup=WARM_UP_MS, rep=REPEAT_MS, return_mode="median")) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("device", "task", "library", "function", "axes"):
        parser.add_argument(name)
    parser.add_argument("--calls", type=int, default=0)
    given = parser.parse_args()
    call = KernelCall(given.device, Path(given.task), Path(given.library), given.function, json.loads(given.axes))
    for _ in range(given.calls or 1):
        call()
    answer: dict[str, object] = {"wrote": call.wrote()}
    if not given.calls:
        answer |= {"do_bench_us": do_bench_us(call), "plain_events_us": plain_events_us(call)}
    print(json.dumps(answer))  # noqa: T201 - the answer


if __name__ == "__main__":
    main()
