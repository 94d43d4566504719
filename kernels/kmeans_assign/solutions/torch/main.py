"""Scores `|c|^2 - 2 x.c` for a chunk of points at a time, then where each row has its minimum."""

from functools import lru_cache

import torch
from torch import Tensor

CHUNK = 4096


def kmeans_assign(x: Tensor, c: Tensor, x_sq: Tensor, ids: Tensor) -> None:
    weights, norms, index = centroid_scratch(c.shape)
    torch.mul(c, c, out=weights)
    torch.sum(weights, -1, out=norms)
    torch.mul(c, -2, out=weights)
    for b in range(len(x)):
        for first in range(0, x.shape[1], CHUNK):
            chunk = slice(first, first + CHUNK)
            nearest(x[b, chunk], weights[b], norms[b], index, ids[b, chunk])


def nearest(points: Tensor, weights: Tensor, norms: Tensor, index: Tensor, ids: Tensor) -> None:
    """Min with an index is scalar in torch; minimum, equality and maximum of the index are vector passes."""
    work, minimum, last = chunk_scratch(len(points), len(weights))
    scores = linear(points, weights, norms, work)
    torch.amin(scores, -1, keepdim=True, out=minimum)
    torch.eq(scores, minimum, out=work)
    torch.amax(work.mul_(index), -1, out=last)
    ids.copy_(last)


def linear(points: Tensor, weights: Tensor, norms: Tensor, work: Tensor) -> Tensor:
    """`norms + points @ weights.T` by oneDNN, which fills the widest vectors where the BLAS behind addmm may not."""
    if torch.backends.mkldnn.is_available():
        return torch.ops.mkldnn._linear_pointwise(points, weights, norms, "none", [], "")
    return torch.addmm(norms, points, weights.T, out=work)


@lru_cache(maxsize=16)
def centroid_scratch(shape: torch.Size) -> tuple[Tensor, Tensor, Tensor]:
    return torch.empty(shape), torch.empty(shape[:2]), torch.arange(shape[1], dtype=torch.float32)


@lru_cache(maxsize=16)
def chunk_scratch(rows: int, centroids: int) -> tuple[Tensor, Tensor, Tensor]:
    return torch.empty(rows, centroids), torch.empty(rows, 1), torch.empty(rows)
