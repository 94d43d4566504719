"""Device memory as torch tensors, for Python and Triton solutions. Runs in workers; knows no driver.

Whose memory it is stays the caller's: a tensor here owns nothing.
"""

import ctypes
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch


class NoDevice(Exception):
    """This Python's torch cannot use the device."""


class _Memory:
    """What torch needs to know of memory that it did not allocate."""

    def __init__(self, address: int, nbytes: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (nbytes,),
            "typestr": "|u1",
            "data": (address, False),
            "strides": None,
            "version": 3,
        }


def missing(*, stand_in: bool) -> str:
    """Why torch cannot use a device that its driver answers for; empty: it can."""
    if stand_in or torch.cuda.is_available():
        return ""
    return f"torch {torch.__version__} of this Python has no GPU: give --python one whose torch is built for it"


def prepare(index: int, *, stand_in: bool) -> None:
    """Make what a solution allocates lie on the device; before it is imported."""
    if stand_in:
        return
    if why := missing(stand_in=stand_in):
        raise NoDevice(why)
    torch.cuda.set_device(index)
    torch.set_default_device(f"cuda:{index}")  # pyright: ignore[reportUnknownMemberType]


def tensor(address: int, shape: Sequence[int], dtype: torch.dtype, index: int, *, stand_in: bool) -> torch.Tensor:
    """A dense tensor on memory at a device address."""
    nbytes = dtype.itemsize
    for size in shape:
        nbytes *= size
    if not nbytes:
        return torch.empty(tuple(shape), dtype=dtype)
    if stand_in:
        flat = torch.frombuffer((ctypes.c_ubyte * nbytes).from_address(address), dtype=torch.uint8)
    else:
        memory: Any = _Memory(address, nbytes)
        flat = torch.as_tensor(memory, device=f"cuda:{index}")
    return flat.view(dtype).reshape(tuple(shape))


def on_stream(stream: int, index: int, *, stand_in: bool) -> AbstractContextManager[Any]:
    """Where torch and Triton launch inside of it."""
    if stand_in:
        return nullcontext()
    external: Any = torch.cuda.ExternalStream(stream, device=f"cuda:{index}")  # pyright: ignore[reportUnknownMemberType]
    return torch.cuda.stream(external)
