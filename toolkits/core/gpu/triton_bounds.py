"""Bounds in Triton's interpreter, which reads and writes wherever a kernel says: who leaves its tensors is told where.

Runs in workers only, beside a solution: on the standard library, numpy, torch and triton alone. Not for kernels that
make pointers of numbers, whose tensors are nobody's arguments.
"""

import importlib
import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch


@dataclass(frozen=True)
class _Extent:
    """Memory that a kernel was given."""

    name: str
    first: int
    end: int


class _Checked:
    """Triton's own memory functions, each after a look at the addresses."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self.extents: list[_Extent] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def load(self, pointers: Any, mask: Any, other: Any, dtype: Any) -> Any:
        self._check("tl.load reads", pointers, mask, np.dtype(dtype).itemsize)
        return self._real.load(pointers, mask, other, dtype)

    def store(self, pointers: Any, value: Any, mask: Any) -> Any:
        self._check("tl.store writes", pointers, mask, value.dtype.itemsize)
        return self._real.store(pointers, value, mask)

    def atomic_rmw(self, operation: Any, pointers: Any, value: Any, mask: Any, order: Any) -> Any:
        self._check("an atomic operation writes", pointers, mask, value.dtype.itemsize)
        return self._real.atomic_rmw(operation, pointers, value, mask, order)

    def atomic_cas(self, pointers: Any, compare: Any, value: Any, order: Any) -> Any:
        self._check("tl.atomic_cas writes", pointers, np.ones_like(pointers, dtype=bool), value.dtype.itemsize)
        return self._real.atomic_cas(pointers, compare, value, order)

    def _check(self, what: str, pointers: Any, mask: Any, size: int) -> None:
        addresses = np.asarray(pointers, dtype=np.uint64)
        outside = np.broadcast_to(np.asarray(mask, dtype=bool), addresses.shape).copy()
        for extent in self.extents:
            outside &= ~((addresses >= extent.first) & (addresses + np.uint64(size) <= extent.end))
        if outside.any():
            place = int(np.flatnonzero(outside)[0])
            raise IndexError(f"{_line()}{what} {self._told(int(addresses.flat[place]), place)}")

    def _told(self, address: int, place: int) -> str:
        """Where that is, seen from the nearest tensor."""
        if not self.extents:
            return f"memory although the kernel was given none (element {place} of the block)"
        near = min(self.extents, key=lambda extent: max(extent.first - address, address - extent.end))
        before = f"{near.first - address} bytes before {near.name}"
        where = before if address < near.first else f"{address - near.end} bytes past the end of {near.name}"
        return f"{where} (element {place} of the block)"


def _line() -> str:
    """The line of the solution that is being interpreted."""
    own, frame = Path(__file__).parent, inspect.currentframe()
    ours = (__file__, str(own / "triton_bfloat16.py"))
    while frame and (Path(frame.f_code.co_filename).parent != own or frame.f_code.co_filename in ours):
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}: " if frame else ""


def install() -> None:
    """From now on every interpreted kernel stays in the memory of its arguments, or raises."""
    interpreter: Any = importlib.import_module("triton.runtime.interpreter")
    checked = interpreter._interpreter = _Checked(interpreter._interpreter)
    executor: Any = interpreter.GridExecutor
    given = executor._init_args_hst

    def noted(self: Any, args: Any, kwargs: Any) -> Any:
        here = given(self, args, kwargs)
        names = inspect.getfullargspec(self.fn).args
        values: dict[str, Any] = {**dict(zip(names, here[0], strict=False)), **here[1]}
        checked.extents = [extent for name, value in values.items() if (extent := _extent(name, value))]
        return here

    executor._init_args_hst = noted


def _extent(name: str, value: Any) -> _Extent | None:
    """The storage of a tensor, or of the one under a descriptor."""
    value = getattr(value, "base", value)
    if not isinstance(value, torch.Tensor):
        return None
    storage = value.untyped_storage()
    return _Extent(name, storage.data_ptr(), storage.data_ptr() + storage.nbytes())
