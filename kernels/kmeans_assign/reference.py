"""Inputs, float64 reference and new content of the k-means assignment."""

import math
from typing import Any

import torch
from torch import Generator, Tensor

Tensors = dict[str, Tensor]


def make_inputs(axes: dict[str, int], distribution: str, generator: Generator) -> Tensors:
    batch, points, centroids, dim = (axes[name] for name in ("batch", "points", "centroids", "dim"))
    x = torch.randn(batch, points, dim, generator=generator)
    c = _rows_of(x, torch.randint(points, (batch, centroids), generator=generator))
    if distribution == "converged":
        c = c * 0.15
    elif distribution == "blobs":
        c = 3 * torch.randn(batch, centroids, dim, generator=generator)
        x = _rows_of(c, torch.randint(centroids, (batch, points), generator=generator)) + 0.3 * x
    elif distribution == "offset":
        x, c = x + 30, c + 30
    elif distribution == "tail_wins":
        last = min(3, centroids, points)
        c[:, -last:] = x[:, :last]
        x[:, last:] = x[:, :1] + 0.01 * x[:, last:]
    elif distribution == "norms":
        c = c * torch.linspace(0.2, 3, centroids)[:, None]
    elif distribution == "dup":
        c[:, 1::2] = c[:, 0 : centroids - 1 : 2]
    elif distribution == "far":
        x, c = x + 6, c + 6
    return {"x": x.contiguous(), "c": c.contiguous(), "x_sq": x.square().sum(-1)}


def reference(inputs: Tensors) -> Tensors:
    """Distances in the direct form: the expanded one would turn an exact zero into a rounding error."""
    distances = torch.stack([_squared_distances(x, c) for x, c in zip(inputs["x"], inputs["c"], strict=True)])
    return {"ids": distances.argmin(-1).int(), "distances": distances}


def refresh(inputs: Tensors, draw: Any) -> None:
    """New normal points, and new centroids from among them, all different: a tie has two right answers."""
    x, c = draw.normal(inputs["x"]), inputs["c"]
    points, centroids = x.shape[1], c.shape[1]
    step = next((n for n in draw.integers(points, (64,)).tolist() if math.gcd(n, points) == 1), 1)
    first = draw.integers(points, (x.shape[0], 1))
    c.copy_(_rows_of(x, (first + step * torch.arange(centroids)) % points))
    torch.linalg.vector_norm(x, dim=-1, out=inputs["x_sq"]).square_()


def _rows_of(table: Tensor, rows: Tensor) -> Tensor:
    """`table[b, rows[b, i]]` for every batch entry b."""
    return table.gather(1, rows[:, :, None].expand(-1, -1, table.shape[2]))


def _squared_distances(x: Tensor, c: Tensor) -> Tensor:
    return torch.cdist(x.double(), c.double(), compute_mode="donot_use_mm_for_euclid_dist").square_()
