"""What a task's `refresh` draws from: new random content, in place, at about the cost of a copy.

Numbers are sums of two windows of a secret pool, at places and with a sign that are drawn each time: every value is
new, also to a candidate that remembers all it has seen. Judge only.
"""

import math

import torch

POOL = 1 << 22
"""Normal numbers that are kept, at least; drawing them one by one would take twenty times as long as a copy."""


class Draw:
    """A source of new content; `generator` is for what is small."""

    def __init__(self, generator: torch.Generator) -> None:
        self.generator = generator
        self._pools: dict[torch.dtype, torch.Tensor] = {}

    def normal(self, into: torch.Tensor) -> torch.Tensor:
        """Fill a dense floating tensor with standard normal numbers; returns it."""
        flat = into.view(-1)
        first, second = self._windows(len(flat), into.dtype)
        # Not quite one: exact sums of pool numbers would have fewer bits than drawn ones, and tell them apart.
        factor = (1 + 2**-6 * self._uniform()) * (1 - 2 * int(self.integers(2, ())))
        torch.add(first, second, alpha=factor, out=flat)
        return into

    def uniform(self, into: torch.Tensor) -> torch.Tensor:
        """Fill with numbers from 0 to 1, one by one; returns it."""
        return into.uniform_(generator=self.generator)

    def integers(self, high: int, shape: tuple[int, ...]) -> torch.Tensor:
        """Integers below `high`, int64."""
        return torch.randint(high, shape, generator=self.generator)

    def _uniform(self) -> float:
        return float(torch.rand((), generator=self.generator))

    def _windows(self, size: int, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
        pool = self._pool(size, dtype)
        one = int(torch.randint(len(pool) - size, (), generator=self.generator))
        # Never the same window twice: the sum would be no sum.
        step = 1 + int(torch.randint(len(pool) - size - 1, (), generator=self.generator))
        other = (one + step) % (len(pool) - size)
        return pool[one : one + size], pool[other : other + size]

    def _pool(self, size: int, dtype: torch.dtype) -> torch.Tensor:
        """At least three times as long as any window; drawn anew when a larger one is asked for."""
        pool = self._pools.get(dtype)
        if pool is None or len(pool) < 3 * size:
            pool = torch.empty(max(POOL, 3 * size))
            pool = pool.normal_(std=math.sqrt(0.5), generator=self.generator).to(dtype)
            self._pools[dtype] = pool
        return pool
