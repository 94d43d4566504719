"""Which GPUs a solution can run on here, and what its process needs to reach one. Loads no driver in this process.

A process that has loaded a driver is no clean parent for workers, so a child is asked, once.
"""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from toolkits.core import process
from toolkits.core.errors import InvalidInput
from toolkits.core.gpu.device_names import APIS, LIBRARY_VARIABLE, VISIBLE

ASK_LIMIT_S = 60.0
"""A driver that was just loaded, or that has lost a device, takes long."""


@dataclass(frozen=True)
class Gpu:
    """One device that a driver answers for."""

    name: str
    """As leases and results call it, such as cuda:0."""
    model: str
    architecture: str
    """Such as sm_90 or gfx942."""
    memory_bytes: int
    multiprocessors: int
    clock_khz: int
    l2_bytes: int
    stand_in: bool
    """No device at all: it lets the whole way be walked where there is none, and no figure of it is a GPU's."""

    @property
    def target(self) -> str:
        """What compilers are asked for: on NVIDIA with the instructions that only this architecture has."""
        number = self.architecture.removeprefix("sm_")
        return f"{self.architecture}a" if number.isdigit() and int(number) >= 90 else self.architecture


@dataclass(frozen=True)
class Found:
    """What a driver says, or why there is none."""

    gpus: tuple[Gpu, ...] = ()
    problem: str = ""


async def found(api: str) -> Found:
    """The devices of one vendor; a machine without device files is not asked."""
    if not library(api) or not (nodes(api) or os.environ.get(LIBRARY_VARIABLE[api])):
        return Found(problem=f"no {api} device: this machine has no device files of one")
    if (api, library(api)) not in _answers:
        _answers[api, library(api)] = await _asked(api)
    return _answers[api, library(api)]


_answers: dict[tuple[str, str], Found] = {}


async def first(api: str) -> Gpu | None:
    """The device that solutions of this kind run on; None: there is none."""
    gpus = (await found(api)).gpus
    return gpus[0] if gpus else None


async def _asked(api: str) -> Found:
    command = [sys.executable, "-P", "-m", "toolkits.core.gpu.device_facts", api, library(api)]
    root = str(Path(__file__).parents[3])
    done = await process.run(command, cwd=Path("/"), timeout_s=ASK_LIMIT_S, env={**os.environ, "PYTHONPATH": root})
    line = done.output.strip().rpartition("\n")[2]
    if done.returncode != 0 or not line.startswith(("[", "{")):
        return Found(problem=f"{library(api)} did not answer: {done.output.strip()[-300:] or 'it hangs'}")
    answer: Any = json.loads(line)
    if isinstance(answer, dict):
        return Found(problem=f"{library(api)}: {answer['problem']}")
    return Found(tuple(_gpu(f"{api}:{index}", facts) for index, facts in enumerate(answer)))


def _gpu(name: str, facts: Mapping[str, Any]) -> Gpu:
    return Gpu(name=name, model=facts["name"], **{what: facts[what] for what in facts if what != "name"})


def library(api: str) -> str:
    """The driver's library: what the environment names, or the usual name; the loader knows where it is."""
    if named := os.environ.get(LIBRARY_VARIABLE[api]):
        return named
    usual, *odd = APIS[api].libraries
    return next((path for path in odd if Path(path).is_file()), usual)


def nodes(api: str) -> list[str]:
    """The device files that a process must see."""
    return sorted(str(path) for pattern in APIS[api].nodes for path in Path("/dev").glob(pattern))


def reach(device: str) -> dict[str, Any]:
    """How a worker opens a device: plain JSON, sent to it with the solution."""
    api, _, index = device.partition(":")
    if api not in APIS or not index.isdigit():
        raise InvalidInput(f"no device {device!r}: names are such as cuda:0 and hip:0")
    return {"api": api, "index": int(index), "library": library(api)}


def numbering(device: str) -> dict[str, str]:
    """The variables of this process by which a driver numbers its devices."""
    wanted = VISIBLE[reach(device)["api"]]
    return {name: os.environ[name] for name in wanted if name in os.environ}


def openings(device: str) -> tuple[list[str], list[str]]:
    """What a box must show for a device: files and folders to read, and device files."""
    api = reach(device)["api"]
    own = [named] if (named := os.environ.get(LIBRARY_VARIABLE[api])) else []
    return [*own, "/sys"], nodes(api)
