"""What the judge asks of a worker on a device beside plain calls: contents sent ahead, bursts of calls, answers back.

Each figure is either the worker's claim or the judge's own clock, and says which. Knows no verdict.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from toolkits.core.errors import HarnessError
from toolkits.core.gpu.device_access import reach
from toolkits.core.judge.channel import HungUp, WorkerFailure
from toolkits.core.judge.workers import Worker

PROBE_LIMIT_S = 60.0


@dataclass(frozen=True)
class Burst:
    """Calls one after the other, each on content of its own."""

    claimed_ns: tuple[int, ...]
    """Between two events around each call, by the device's clock: the worker says so."""
    host_ns: tuple[int, ...]
    """In the function, by the worker's clock: what launching costs."""
    wall_ns: int
    """Of the whole request, by the judge's clock."""
    no_graph: str = ""
    """Why no graph could be made; then nothing was run."""


def stage(worker: Worker, slot: int, at: int, scalars: dict[str, Any], limit_s: float) -> int:
    """Have a worker keep what the judge wrote last as content number `at`; the judge's wall clock for it."""
    return worker.on_device("stage", slot, {"at": at, "scalars": scalars}, limit_s)[1]


def burst(
    worker: Worker, slot: int, order: Sequence[int], limit_s: float, *, cold: bool = False, graph: bool = False
) -> Burst:
    """One call for each content in `order`."""
    about = {"order": list(order), "cold": cold, "graph": graph}
    worker.outputs(slot).poison()  # what the device's outputs hold before each call
    answer, wall_ns = worker.on_device("burst", slot, about, limit_s * (len(order) + 1))
    if "no_graph" in answer:
        return Burst((), (), wall_ns, str(answer["no_graph"])[:200])
    return Burst(_figures(answer, "device_ns", len(order)), _figures(answer, "host_ns", len(order)), wall_ns)


def _figures(answer: dict[str, Any], name: str, count: int) -> tuple[int, ...]:
    """A worker may say anything: what are no figures is a claim of nothing, which the judge's clock will not bear."""
    said: Any = answer.get(name)
    if not isinstance(said, list) or len(said) != count or not all(isinstance(one, int) for one in said):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        return (1,) * count
    return tuple(max(int(one), 1) for one in said)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def take(worker: Worker, slot: int, at: int, limit_s: float) -> int:
    """Have the answer to a content of the last burst where the judge looks; the judge's wall clock for it."""
    worker.outputs(slot).poison()
    return worker.on_device("take", slot, {"at": at}, limit_s)[1]


def give_back(worker: Worker, slot: int, limit_s: float) -> None:
    """Have it free the memory of bursts."""
    worker.on_device("give_back", slot, {}, limit_s)


class Warden:
    """A worker that meets no solution: it says what the device is, how fast it copies, and what of it is free."""

    def __init__(self, worker: Worker, device: str) -> None:
        self._worker, self._device = worker, device
        try:
            worker.meet()
            said = self._asked(measure=False)
            self.facts: dict[str, Any] = said["facts"]
            self.no_torch = str(said["no_torch"])
        except (HungUp, WorkerFailure) as error:
            worker.close()
            raise HarnessError(f"{device} cannot be used: {error}", "device_failed") from error

    def free_bytes(self) -> int:
        return int(self._asked(measure=False)["free_bytes"])

    def copy_gb_s(self) -> float:
        return float(self._asked(measure=True)["copy_gb_s"])

    def _asked(self, *, measure: bool) -> dict[str, Any]:
        try:
            return self._worker.on_device("probe", 0, reach(self._device) | {"measure": measure}, PROBE_LIMIT_S)[0]
        except WorkerFailure as error:
            raise HarnessError(f"{self._device} failed: {error.detail}", "device_failed") from error

    def alive(self) -> bool:
        return self._worker.alive()

    def close(self) -> None:
        self._worker.close()
