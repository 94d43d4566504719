"""What one core can do at most, measured with torch alone: bandwidth of each level of memory, and arithmetic peak.

In CPU time, best of many, and the highest figure ever seen counts: whoever shares the machine cannot lower it.
"""

import os
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch

from toolkits.core import speeds as kept
from toolkits.core.judge.floor import Floor, floor_of
from toolkits.core.schema import MemoryLevel, Speeds, Task

Call = Callable[[], object]

LARGEST_SET = 64 << 20
LEVEL_NS = 8_000_000
"""Of measuring a level of memory, an operation or a format."""
LEAST_CALLS = 3
SQUARE = 384
BYTES_A_FLOP = 3.0
"""First-level bytes a float32 operation: a core with two multiply-add units loads two vectors and stores one a cycle.

No torch call is short enough to show it: at 32 KB all of its time is the call itself."""
USUAL_CACHES = [("L1", 64 << 10), ("L2", 2 << 20), ("L3", 64 << 20)]
HALF_FORMATS = {
    torch.bfloat16: {"avx512_bf16", "amx_bf16", "bf16"},
    torch.float16: {"avx512_fp16", "amx_fp16", "asimdhp"},
}
"""Formats that some cores multiply faster than float32, and the flags of such cores; elsewhere torch crawls."""


class Calibration:
    """The speeds of the core that candidates are timed on: measured once a machine, at the first need."""

    def __init__(self, core: int, folder: Path | None = None) -> None:
        self._core, self._folder = core, folder
        self._speeds: Speeds | None = None

    def floor(self, task: Task, axes: dict[str, int]) -> Floor | None:
        """The floor of a workload; a task that states no work costs no measurement."""
        return floor_of(task, axes, self.speeds()) if task.work else None

    def speeds(self) -> Speeds:
        if not self._speeds:
            self._speeds = kept.stored(kept.machine(), self._folder) or self._kept(measure(self._core))
        return self._speeds

    def again(self) -> None:
        """Measure once more, before anybody is accused: figures may only rise."""
        self._speeds = self._kept(highest(self.speeds(), measure(self._core)))

    def _kept(self, speeds: Speeds) -> Speeds:
        kept.store(speeds, self._folder)
        return speeds


def measure(core: int) -> Speeds:
    """All figures of one core, in about a tenth of a second."""
    with _on(core):
        sizes = caches(core)
        buffer = torch.ones(min(2 * sizes[-1][1], LARGEST_SET) // 4)
        gflops = _gflops(torch.float32)
        _, flags = kept.cpu()
        halves = [_gflops(dtype) for dtype, needed in HALF_FORMATS.items() if needed & flags]
        found = [_level(buffer, size // 2) for _, size in sizes[1:]] + [_level(buffer, buffer.nbytes)]
    return Speeds(
        machine=kept.machine(),
        levels=_falling([*sizes, ("memory", None)], [gflops * BYTES_A_FLOP, *found]),
        gflops=round(gflops, 1),
        fastest_gflops=round(max([gflops, *halves]), 1),
    )


def highest(one: Speeds, other: Speeds) -> Speeds:
    """Of every figure the larger; `other` where the two know different caches."""
    if [level.name for level in one.levels] != [level.name for level in other.levels]:
        return other
    levels = [a.model_copy(update={"gb_s": max(a.gb_s, b.gb_s)}) for a, b in zip(one.levels, other.levels, strict=True)]
    return one.model_copy(
        update={
            "levels": levels,
            "gflops": max(one.gflops, other.gflops),
            "fastest_gflops": max(one.fastest_gflops, other.fastest_gflops),
        }
    )


def _falling(names: Sequence[tuple[str, int | None]], found: list[float]) -> list[MemoryLevel]:
    """A level that seems slower than a larger one was badly measured."""
    return [
        MemoryLevel(name=name, bytes=size, gb_s=round(max(found[place:]), 1))
        for place, (name, size) in enumerate(names)
    ]


def caches(core: int, root: Path = Path("/sys/devices/system/cpu")) -> list[tuple[str, int]]:
    """Names and sizes of the caches for data, smallest first; usual ones where the system does not say."""
    found: dict[str, int] = {}
    for folder in sorted((root / f"cpu{core}" / "cache").glob("index*")):
        try:
            kind, level, size = ((folder / name).read_text(encoding="utf-8").strip() for name in _CACHE_FILES)
        except OSError:
            continue
        if kind != "Instruction" and size.endswith("K"):
            found[f"L{level}"] = int(size[:-1]) << 10
    return sorted(found.items(), key=lambda cache: cache[1]) or USUAL_CACHES


_CACHE_FILES = ("type", "level", "size")


@contextmanager
def _on(core: int) -> Generator[None]:
    """This process on that core alone, as the timed workers are."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _level(buffer: torch.Tensor, size: int) -> float:
    """Bytes read and written in a working set of `size` bytes, 1e9 a second: the best of reading, writing and both."""
    whole = buffer[: size // 4]
    half = len(whole) // 2
    first, second = whole[:half], whole[half : 2 * half]
    tiny, few, others = buffer[:8], buffer[:4], buffer[4:8]
    ways: list[tuple[int, Call, Call]] = [
        (2 * whole.nbytes, lambda: whole.add_(1.0), lambda: tiny.add_(1.0)),
        (whole.nbytes, lambda: whole.fill_(1.0), lambda: tiny.fill_(1.0)),
        (whole.nbytes, lambda: first.copy_(second), lambda: few.copy_(others)),
        (whole.nbytes, lambda: torch.dot(first, second), lambda: torch.dot(few, others)),
    ]
    return max(moved / _call_ns(call, nothing) for moved, call, nothing in ways)


def _gflops(dtype: torch.dtype) -> float:
    """1e9 operations a second of a matrix product, by the better of torch's libraries."""
    a, b = torch.ones(SQUARE, SQUARE, dtype=dtype), torch.ones(SQUARE, SQUARE, dtype=dtype)
    calls: list[Call] = [lambda: torch.mm(a, b)]
    if dtype is torch.float32 and torch.backends.mkldnn.is_available():
        left, right = a.to_mkldnn(), b.to_mkldnn()
        calls.append(lambda: torch.nn.functional.linear(left, right))
    return 2 * SQUARE**3 / min(_best_ns(call) for call in calls)


def _call_ns(call: Call, nothing: Call) -> float:
    """CPU time of a call without what asking costs."""
    taken = _best_ns(call)
    return max(taken - _best_ns(nothing, LEVEL_NS // 16), taken / 4)


def _best_ns(call: Call, limit_ns: int = LEVEL_NS // 4) -> float:
    """CPU time of the whole process, so that a library's own threads count."""
    call()
    best, spent, calls = float("inf"), 0, 0
    while spent < limit_ns or calls < LEAST_CALLS:
        started = time.process_time_ns()
        call()
        taken = max(time.process_time_ns() - started, 1)
        best, spent, calls = min(best, taken), spent + taken, calls + 1
    return best
