"""What most harnesses do, as the peer of `make bench-noise`: the median of 100 calls each, one after the other.

    python -m bench.plain LIBRARY

prints the median wall time of the library's `spin` in nanoseconds, in a process of its own, pinned to nothing.
"""

import ctypes
import statistics
import sys
import time
from pathlib import Path

from toolkits.core import process

CALLS = 100
SIZE = 512


async def median_ns(library: Path) -> float:
    """The median of one library, measured in a fresh process."""
    command = [sys.executable, "-m", "bench.plain", str(library)]
    done = await process.run(command, cwd=Path.cwd(), timeout_s=60)
    assert done.returncode == 0, done.output
    return float(done.output)


def _measure(library: str) -> float:
    spin = ctypes.CDLL(library).spin
    x, y = (ctypes.c_float * SIZE)(), (ctypes.c_float * SIZE)()
    times: list[int] = []
    for _ in range(CALLS):
        started = time.perf_counter_ns()
        spin(x, y, ctypes.c_int64(SIZE))
        times.append(time.perf_counter_ns() - started)
    return statistics.median(times)


if __name__ == "__main__":
    sys.stdout.write(f"{_measure(sys.argv[1])}\n")
