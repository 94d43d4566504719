"""Scores `|c|^2 - 2 x.c` by addmm into a reused buffer, then min with its index, a chunk of points at a time."""

from functools import lru_cache

import torch
from torch import Tensor

CHUNK = 2048


def kmeans_assign(x: Tensor, c: Tensor, x_sq: Tensor, ids: Tensor) -> None:
    squares, norms = centroid_scratch(c.shape)
    torch.mul(c, c, out=squares)
    torch.sum(squares, -1, out=norms)
    for b in range(len(x)):
        for first in range(0, x.shape[1], CHUNK):
            points = x[b, first : first + CHUNK]
            scores, minimum, index = chunk_scratch(len(points), c.shape[1])
            torch.addmm(norms[b], points, c[b].T, alpha=-2, out=scores)
            torch.min(scores, -1, out=(minimum, index))
            ids[b, first : first + CHUNK] = index


@lru_cache(maxsize=16)
def centroid_scratch(shape: torch.Size) -> tuple[Tensor, Tensor]:
    return torch.empty(shape), torch.empty(shape[:2])


@lru_cache(maxsize=16)
def chunk_scratch(rows: int, centroids: int) -> tuple[Tensor, Tensor, Tensor]:
    return torch.empty(rows, centroids), torch.empty(rows), torch.empty(rows, dtype=torch.int64)
