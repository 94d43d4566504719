"""A program a tile of points: products with tiles of centroids as matrix products, and a running minimum."""

import triton
import triton.language as tl
from torch import Tensor


def kmeans_assign(x: Tensor, c: Tensor, x_sq: Tensor, ids: Tensor) -> None:
    batch, points, dim = x.shape
    grid = (triton.cdiv(points, 128), batch)
    _nearest[grid](x, c, ids, points, c.shape[1], dim, POINTS=128, CENTROIDS=64, DIM=32, num_warps=8)


@triton.jit
def _nearest(x, c, ids, points, centroids, dim, POINTS: tl.constexpr, CENTROIDS: tl.constexpr, DIM: tl.constexpr):
    b = tl.program_id(1).to(tl.int64)
    point, lane = tl.program_id(0) * POINTS + tl.arange(0, POINTS), tl.arange(0, CENTROIDS)
    x += b * points * dim
    c += b * centroids * dim
    best = tl.full([POINTS], float("inf"), tl.float32)
    id = tl.zeros([POINTS], tl.int32)
    for first in range(0, centroids, CENTROIDS):
        k = first + lane
        product = tl.zeros([POINTS, CENTROIDS], tl.float32)
        norm = tl.zeros([CENTROIDS], tl.float32)
        for start in range(0, dim, DIM):
            d = start + tl.arange(0, DIM)
            inside = d < dim
            rows = tl.load(x + point[:, None] * dim + d, mask=(point < points)[:, None] & inside, other=0.0)
            columns = tl.load(c + k * dim + d[:, None], mask=inside[:, None] & (k < centroids), other=0.0)
            product = tl.dot(rows, columns, product, input_precision="ieee")
            norm += tl.sum(columns * columns, 0)
        score = tl.where(k < centroids, norm - 2 * product, float("inf"))
        lowest, place = tl.min(score, 1, return_indices=True)
        better = lowest < best
        best = tl.where(better, lowest, best)
        id = tl.where(better, first + place, id)
    tl.store(ids + b * points + point, id, mask=point < points)
