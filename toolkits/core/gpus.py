"""The GPUs of this machine as their drivers describe them, asked anew at each call by a child with a time limit.

Imports no driver's package: where a driver hangs or kills the child, that is an answer with a remedy.
"""

import os
import sys
from pathlib import Path

from pydantic import TypeAdapter

import toolkits
from toolkits.core import process
from toolkits.core.gpu.listing_child import MARK
from toolkits.core.schema import Device

LIMIT_S = 20.0
PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "ROCM_PATH", "CUDA_VISIBLE_DEVICES")


VISIBLE = {"cuda": "CUDA_VISIBLE_DEVICES", "hip": "HIP_VISIBLE_DEVICES"}
_locks: dict[tuple[str, str], str] = {}


async def lock_of(name: str) -> str:
    """What a lease of `cuda:0` is taken by: the GPU's uuid, since each process may number GPUs otherwise.

    The name itself where the driver tells no uuid, and for all that is no GPU. Asked once for what is visible.
    """
    api, _, index = name.partition(":")
    if api not in VISIBLE or not index.isdigit():
        return name
    shown = os.environ.get(VISIBLE[api], "")
    if (name, shown) not in _locks:
        number = _number(shown, int(index))
        found = {one.name: one.gpu.uuid for one in await listed() if one.gpu and one.gpu.uuid}
        _locks[name, shown] = found.get(f"{api}:{number}", number if number.startswith("GPU-") else name)
    return _locks[name, shown]


def _number(shown: str, index: int) -> str:
    """The driver's number, or the uuid, of the device that a process with these visible devices calls `index`."""
    entries = [entry.strip() for entry in shown.split(",") if entry.strip()]
    return entries[index] if index < len(entries) else str(index)


async def listed() -> list[Device]:
    """Every GPU; what a driver does not tell is a problem of the device, or of a device that stands for the driver."""
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    root = Path(toolkits.__path__[0]).resolve().parent
    command = [sys.executable, "-P", "-m", "toolkits.core.gpu.listing_child"]
    done = await process.run(
        command, cwd=Path("/"), timeout_s=LIMIT_S, env=environment | {"PYTHONPATH": str(root), "LANG": "C.UTF-8"}
    )
    answer = done.output.rpartition(MARK)[2].partition("\n")[0] if MARK in done.output else ""
    if not answer:
        return [Device(name="gpu", kind="cuda", description="GPU driver", problem=_silence(done.returncode))]
    return TypeAdapter(list[Device]).validate_json(answer)


def _silence(returncode: int | None) -> str:
    how = f"did not answer in {LIMIT_S:.0f} s" if returncode is None else f"ended the process that asked ({returncode})"
    return f"a GPU driver {how}: try nvidia-smi or amd-smi, and reboot if they hang too"
