"""Devices of this machine, and their exclusive use across processes.

The lease is a file lock: the kernel drops it when its holder dies, however it dies, so no lease is ever stale.
"""

import fcntl
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio

from toolkits.core import gpus, speeds
from toolkits.core.schema import Device

POLL_S = 0.005
FEATURES = ("avx2", "fma", "avx512f", "avx512_bf16", "amx_tile", "neon", "sve")


def _lock_path(device: str) -> Path:
    return speeds.own_folder() / f"{device}.lease"


@asynccontextmanager
async def lease(device: str = "cpu") -> AsyncGenerator[None]:
    """Exclusive use of a device such as `cpu` or `cuda:0` for timing, over all servers of this user on this machine."""
    with _lock_path(await gpus.lock_of(device)).open("w") as file:
        while not _taken(file.fileno()):
            await anyio.sleep(POLL_S)
        yield


def _taken(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _busy(device: str) -> bool:
    with _lock_path(device).open("w") as file:
        return not _taken(file.fileno())


def lock_name(device: Device) -> str:
    """What a lease of the device is taken by: of a GPU its uuid, since processes number GPUs as they are told to."""
    return device.gpu.uuid if device.gpu and device.gpu.uuid else device.name


async def all_devices() -> list[Device]:
    """What kernels can run on here: the CPU, then the GPUs that the drivers know."""
    found = await gpus.listed()
    return [*devices(), *(gpu.model_copy(update={"busy": _busy(lock_name(gpu))}) for gpu in found)]


def devices() -> list[Device]:
    """The CPU, for which nobody need be asked."""
    model, flags = speeds.cpu()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    cores = len(os.sched_getaffinity(0))
    features = [feature for feature in FEATURES if feature in flags]
    return [
        Device(
            name="cpu",
            kind="cpu",
            description=model,
            cores=cores,
            memory_gb=round(memory, 1),
            features=features,
            busy=_busy("cpu"),
            speeds=speeds.stored(speeds.machine()),
        )
    ]
