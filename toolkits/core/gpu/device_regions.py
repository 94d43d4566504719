"""One workload's memory on a device: twins of the memory that the judge shares, and contents that wait their turn.

A twin has the guards and offsets of what it mirrors, so a write past a tensor shows to the judge after the copy back.
Standard library only; runs in workers. Knows no solution and no clock.
"""

import ctypes
from dataclasses import dataclass, field
from typing import Any

from toolkits.core.gpu.device_driver import Driver

Json = dict[str, Any]
_libc = ctypes.CDLL(None)
_libc.memcmp.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]


class Twin:
    """A span of host memory, and as much on the device."""

    def __init__(self, driver: Driver, host: int, size: int) -> None:
        self._driver, self._host, self.size = driver, host, size
        self.device = driver.allocate(size)

    def up(self) -> None:
        """Host to device, guards included."""
        self._driver.to_device(self.device, self._host, self.size)

    def down(self, source: int = 0) -> None:
        """Device to host, from the twin itself or from a copy of it."""
        self._driver.to_host(self._host, source or self.device, self.size)

    def unchanged(self) -> bool:
        """Whether the device still holds what the host does."""
        seen = (ctypes.c_ubyte * self.size)()
        self._driver.to_host(ctypes.addressof(seen), self.device, self.size)
        return _libc.memcmp(ctypes.addressof(seen), self._host, self.size) == 0


@dataclass
class Regions:
    """All device memory of one workload."""

    driver: Driver
    inputs: Twin
    outputs: Twin
    workspace: Twin | None
    stream: int
    flush_bytes: int
    """Twice the last-level cache."""
    blank: int = 0
    """Outputs as no call has touched them: poison and guards."""
    flushed: int = 0
    contents: dict[int, tuple[int, Json]] = field(default_factory=dict[int, tuple[int, Json]])
    """Inputs that were sent ahead, with their scalars."""
    answers: dict[int, int] = field(default_factory=dict[int, int])
    """Outputs of calls, by the content that they answer."""

    def stage(self, at: int, scalars: Json) -> None:
        """Keep what the judge wrote last as content number `at`."""
        if at not in self.contents:
            self.contents[at] = self.driver.allocate(self.inputs.size), {}
        address = self.contents[at][0]
        self.inputs.up()
        self.driver.copy(address, self.inputs.device, self.inputs.size, self.stream)
        self.driver.synchronize()
        self.contents[at] = address, scalars

    def ready(self) -> None:
        """Have all memory of timed calls: whoever allocates waits for the device."""
        if not self.flushed:
            self.flushed = self.driver.allocate(self.flush_bytes)
            self.blank = self.driver.allocate(self.outputs.size)
            self.outputs.up()
            self.driver.copy(self.blank, self.outputs.device, self.outputs.size, self.stream)
        for at in self.contents.keys() - self.answers.keys():
            self.answers[at] = self.driver.allocate(self.outputs.size)

    def prepare(self, at: int, *, cold: bool) -> None:
        """Content number `at` in the inputs, poison in the outputs, all queued: the caches empty, or full of both.

        The work is the same either way, and long enough that a launch is waiting when it is over.
        """
        if not cold:
            self._flush()
        self.driver.copy(self.inputs.device, self.contents[at][0], self.inputs.size, self.stream)
        self.driver.copy(self.outputs.device, self.blank, self.outputs.size, self.stream)
        if cold:
            self._flush()

    def _flush(self) -> None:
        self.driver.fill(self.flushed, 0, self.flush_bytes, self.stream)

    def keep(self, at: int) -> None:
        """What the outputs hold now is the answer to content `at`."""
        self.driver.copy(self.answers[at], self.outputs.device, self.outputs.size, self.stream)

    def give_back(self) -> None:
        """Free all but what every call needs."""
        others = [address for address, _ in self.contents.values()]
        for address in (*others, *self.answers.values(), self.blank, self.flushed):
            if address:
                self.driver.release(address)
        self.contents.clear()
        self.answers.clear()
        self.blank = self.flushed = 0
