"""Empties the caches of some tensors, so that a call starts cold. Judge only, on the core of its workers.

On x86-64 the lines themselves are flushed, for all processes that share the memory; elsewhere, and on CPUs without the
instruction, a walk over twice the last-level cache pushes them out.
"""

import ctypes
import mmap
import platform
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

import torch

# clflushopt [rdi]; add rdi, 64; cmp rdi, rsi; jb -13; mfence; ret
_FLUSH = bytes.fromhex("660fae3f 4883c740 4839f7 72f3 0faef0 c3")
_CACHE = Path("/sys/devices/system/cpu/cpu0/cache")
_UNKNOWN_CACHE_BYTES = 64 << 20


def describe() -> str:
    """How a call is made cold here, for the record."""
    return "lines flushed" if _native() else f"{_walk_bytes() >> 20} MB walked"


def empty(tensors: Iterable[torch.Tensor]) -> None:
    """Push the tensors out of every cache level."""
    native = _native()
    if not native:
        _walk().sum()
        return
    for tensor in tensors:
        if tensor.nbytes:
            native[1](tensor.data_ptr(), tensor.data_ptr() + tensor.nbytes)


@cache
def _native() -> tuple[mmap.mmap, Callable[[int, int], None]] | None:
    """The loop as a C function with the page it lies in; None where the CPU or the kernel does not allow it."""
    if platform.machine() != "x86_64" or "clflushopt" not in Path("/proc/cpuinfo").read_text(encoding="utf-8"):
        return None
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:
        return None
    page.write(_FLUSH)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    return page, ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(address)


@cache
def _walk() -> torch.Tensor:
    return torch.zeros(_walk_bytes() // 8, dtype=torch.float64)


@cache
def _walk_bytes() -> int:
    """Twice the largest cache that the kernel tells of."""
    sizes = [path.read_text(encoding="utf-8").strip() for path in _CACHE.glob("index*/size")]
    return 2 * max((int(size.rstrip("K")) << 10 for size in sizes), default=_UNKNOWN_CACHE_BYTES)
