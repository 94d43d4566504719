"""Shared memory between the judge and its workers: the tensors of one workload, guarded and at fixed places.

Inputs are one memory for all workers of a workload, sealed so that only the judge can write it: a worker maps it
read-only and no call of its can change that. Outputs are one memory a worker. Both are anonymous (memfd): nothing to
clean up after a kill, nothing for another process to find by name.
"""

import ctypes
import fcntl
import mmap
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import torch

from toolkits.core.judge.worker import DTYPES
from toolkits.core.schema import Task, TensorSpec
from toolkits.core.signature import shape_of

ALIGN = 4096
GUARD = 4096
"""Bytes of sentinel before and after every tensor; a write past the end of an output lands there and is seen."""
SENTINEL = 0xA5
POISON = 0xFF
"""NaN as float: floating outputs before a call, and what lies behind an input."""
POISON_OTHER = 0x81
"""Integer and bool outputs before a call: no bool, and no integer that means something, as -1 often does."""
WHOLE = 1 << 18
"""Bytes up to which an output is poisoned whole before a call."""
PATCHES, PATCH = 2, 16384
"""Of larger ones, places and bytes in each: there the answer to other content stands, which is as wrong."""
SURELY_NO_CHANCE = 256
"""Bytes of an answer from which on two that are equal are the same."""
_F_SEAL_FUTURE_WRITE = 0x0010
_F_SEAL_LENGTH = 0x0001 | 0x0002 | 0x0004
"""No more seals, no shrinking, no growing: a file cut short would end whoever looks at it."""

_libc = ctypes.CDLL(None)
_libc.memcmp.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]


@dataclass(frozen=True)
class Place:
    """Where one tensor lies."""

    name: str
    offset: int
    nbytes: int
    shape: tuple[int, ...]
    dtype: torch.dtype

    @property
    def poison(self) -> int:
        """The byte that fills it before a call, as an output."""
        return POISON if self.dtype.is_floating_point else POISON_OTHER


class Memory:
    """Some tensors in one anonymous file, with guards between them."""

    def __init__(self, specs: Mapping[str, TensorSpec], sizes: dict[str, int], fill: int) -> None:
        self.places, self.size = _layout(specs, sizes)
        self.fd = os.memfd_create("kernel-lab", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, self.size)
        self._bytes = torch.frombuffer(mmap.mmap(self.fd, self.size), dtype=torch.uint8)
        self._bytes.fill_(fill)
        self.tensors = {name: _typed(self.span(place), place) for name, place in self.places.items()}

    def span(self, place: Place) -> torch.Tensor:
        """The bytes of one tensor."""
        return self._bytes[place.offset : place.offset + place.nbytes]

    def guards(self) -> list[torch.Tensor]:
        """The bytes before, between and after the tensors."""
        places = list(self.places.values())
        ends = [0] + [place.offset + place.nbytes for place in places]
        starts = [place.offset for place in places] + [self.size]
        return [self._bytes[end:start] for end, start in zip(ends, starts, strict=True)]

    def close(self) -> None:
        os.close(self.fd)


class Inputs(Memory):
    """What every worker of a workload reads; only the judge writes."""

    def __init__(self, task: Task, axes: dict[str, int]) -> None:
        super().__init__(task.inputs, task.sizes(axes), POISON)
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, _F_SEAL_FUTURE_WRITE | _F_SEAL_LENGTH)


class Written(Memory):
    """Memory that one worker writes; the judge sees what it writes beside the tensors."""

    def __init__(self, specs: Mapping[str, TensorSpec], sizes: dict[str, int]) -> None:
        super().__init__(specs, sizes, SENTINEL)
        fcntl.fcntl(self.fd, fcntl.F_ADD_SEALS, _F_SEAL_LENGTH)
        self._guards = self.guards()
        self._sentinel = torch.full((max(len(guard) for guard in self._guards),), SENTINEL, dtype=torch.uint8)

    def poison(self) -> None:
        for place in self.places.values():
            self.span(place).fill_(place.poison)

    def poison_in_places(self) -> None:
        """Poison what is small, and of what is large a few places that nobody can guess."""
        for place in self.places.values():
            span = self.span(place)
            if place.nbytes <= WHOLE:
                span.fill_(place.poison)
                continue
            for where in struct.unpack(f"{PATCHES}I", os.urandom(4 * PATCHES)):
                start = where % (place.nbytes - PATCH) & -place.dtype.itemsize
                span[start : start + PATCH].fill_(place.poison)

    def guards_intact(self) -> bool:
        return all(_same_bytes(guard, self._sentinel[: len(guard)]) for guard in self._guards)

    def restore_guards(self) -> None:
        """Undo what an earlier worker wrote where nobody may."""
        for guard in self._guards:
            guard.fill_(SENTINEL)


class Workspace(Written):
    """What one worker's plan leaves for its run: bytes of no type."""

    def __init__(self, task: Task, axes: dict[str, int]) -> None:
        assert task.plan
        super().__init__({"": TensorSpec(shape=[task.plan.workspace], dtype="bool")}, task.sizes(axes))

    @property
    def offset(self) -> int:
        return self.places[""].offset


class Outputs(Written):
    """A worker's answers."""

    def __init__(self, task: Task, axes: dict[str, int]) -> None:
        super().__init__(task.outputs, task.sizes(axes))
        self.accepted: dict[str, torch.Tensor] = {}
        """The last answer that was found right."""

    def taken(self) -> dict[str, torch.Tensor]:
        """A private copy of what the outputs hold now, as bytes: a copy of bools would turn any byte into 0 or 1."""
        return {name: _typed(self.span(place).clone(), place) for name, place in self.places.items()}

    def equal(self, taken: dict[str, torch.Tensor]) -> bool:
        return all(_same_bytes(self.tensors[name], tensor) for name, tensor in taken.items())

    def repeats(self, taken: dict[str, torch.Tensor]) -> bool:
        """Whether an answer is the last right one again; what is very small may be so by chance."""
        size = sum(tensor.nbytes for tensor in taken.values())
        return (
            bool(self.accepted)
            and size >= SURELY_NO_CHANCE
            and all(_same_bytes(old, taken[name]) for name, old in self.accepted.items())
        )

    def unwritten(self) -> str:
        """Name of an output that still holds nothing but poison, or empty."""
        for place in self.places.values():
            start, poison = self.span(place)[:GUARD], place.poison
            if place.nbytes and bool((start == poison).all()) and bool((self.span(place) == poison).all()):
                return place.name
        return ""


def _layout(specs: Mapping[str, TensorSpec], sizes: dict[str, int]) -> tuple[dict[str, Place], int]:
    places: dict[str, Place] = {}
    end = GUARD
    for name, spec in specs.items():
        if spec.shape is None:
            continue
        shape = shape_of(spec, sizes)
        nbytes = prod(shape) * DTYPES[spec.dtype].itemsize
        places[name] = Place(name, end, nbytes, shape, DTYPES[spec.dtype])
        end += -(-(nbytes + GUARD) // ALIGN) * ALIGN
    return places, end


def _typed(span: torch.Tensor, place: Place) -> torch.Tensor:
    return span.view(place.dtype).reshape(place.shape)


def _same_bytes(one: torch.Tensor, other: torch.Tensor) -> bool:
    return _libc.memcmp(one.data_ptr(), other.data_ptr(), one.numel() * one.itemsize) == 0
