"""A faithful second implementation of the assignment, and the same with one named defect each."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

MUTANTS = [
    "pad_zero",
    "drop_tail",
    "no_norm",
    "norm_low_precision",
    "dot_low_precision",
    "minimum_starts_at_zero",
    "index_within_tile",
    "last_point_missing",
    "centroids_of_first_batch",
]

TILE = 64

Scores = Callable[[Tensor, Tensor], Tensor]
"""(points [n, dim], centroid tile [k, dim]) -> what is minimised, [n, k]."""


def scores(x: Tensor, c: Tensor) -> Tensor:
    return c.square().sum(-1) - 2 * x @ c.T


def nearest(x: Tensor, c: Tensor, score: Scores = scores, start: float = math.inf, local: bool = False) -> Tensor:
    """Stream over centroid tiles with a running minimum, for one batch entry."""
    best, ids = torch.full((len(x),), start), torch.zeros(len(x), dtype=torch.int64)
    for first in range(0, len(c), TILE):
        value, index = score(x, c[first : first + TILE]).min(-1)
        better = value < best
        best = torch.where(better, value, best)
        ids = torch.where(better, index if local else index + first, ids)
    return ids


def faithful(x: Tensor, c: Tensor, x_sq: Tensor, ids: Tensor) -> None:
    for b in range(len(x)):
        ids[b] = nearest(x[b], c[b])


def pad_zero(x: Tensor, c: Tensor, x_sq: Tensor, ids: Tensor) -> None:
    """The last tile is filled with zero vectors that take part."""
    padded = torch.cat([c, c.new_zeros(len(c), -c.shape[1] % TILE, c.shape[2])], 1)
    faithful(x, padded, x_sq, ids)


def drop_tail(x: Tensor, c: Tensor, x_sq: Tensor, ids: Tensor) -> None:
    """Centroids beyond the last full vector of eight are never looked at."""
    faithful(x, c[:, : c.shape[1] // 8 * 8], x_sq, ids)


def no_norm(x: Tensor, c: Tensor, x_sq: Tensor, ids: Tensor) -> None:
    for b in range(len(x)):
        ids[b] = nearest(x[b], c[b], lambda p, q: -p @ q.T)


def norm_low_precision(x: Tensor, c: Tensor, x_sq: Tensor, ids: Tensor) -> None:
    for b in range(len(x)):
        ids[b] = nearest(x[b], c[b], lambda p, q: q.bfloat16().square().sum(-1).float() - 2 * p @ q.T)


def dot_low_precision(x: Tensor, c: Tensor, x_sq: Tensor, ids: Tensor) -> None:
    for b in range(len(x)):
        ids[b] = nearest(x[b], c[b], lambda p, q: q.square().sum(-1) - 2 * (p.bfloat16() @ q.bfloat16().T).float())


def minimum_starts_at_zero(x: Tensor, c: Tensor, x_sq: Tensor, ids: Tensor) -> None:
    for b in range(len(x)):
        ids[b] = nearest(x[b], c[b], start=0.0)


def index_within_tile(x: Tensor, c: Tensor, x_sq: Tensor, ids: Tensor) -> None:
    for b in range(len(x)):
        ids[b] = nearest(x[b], c[b], local=True)


def last_point_missing(x: Tensor, c: Tensor, x_sq: Tensor, ids: Tensor) -> None:
    """A point count that is no multiple of four loses its rest."""
    faithful(x, c, x_sq, ids)
    ids[:, x.shape[1] // 4 * 4 :] = 0


def centroids_of_first_batch(x: Tensor, c: Tensor, x_sq: Tensor, ids: Tensor) -> None:
    for b in range(len(x)):
        ids[b] = nearest(x[b], c[0])
