"""A program a tile of queries: the offset term of a tile is one band product, read back skewed; softmax is online."""

import triton
import triton.language as tl
from torch import Tensor


def relpos_txl_fwd(q: Tensor, k: Tensor, v: Tensor, r: Tensor, u: Tensor, w: Tensor, scale: float, out: Tensor) -> None:
    heads, tokens, dim = q.shape
    _attend[(triton.cdiv(tokens, 32), heads)](q, k, v, r, u, w, scale, out, tokens, TILE=32, DIM=dim, num_warps=8)


@triton.jit
def _attend(q, k, v, r, u, w, scale, out, tokens, TILE: tl.constexpr, DIM: tl.constexpr):
    h = tl.program_id(1).to(tl.int64)
    lane, column, d = tl.arange(0, TILE), tl.arange(0, 2 * TILE), tl.arange(0, DIM)
    i = tl.program_id(0) * TILE + lane
    here = (i < tokens)[:, None]
    query = tl.load(q + (h * tokens + i[:, None]) * DIM + d, mask=here, other=0.0)
    content = scale * (query + tl.load(u + h * DIM + d))
    relative = scale * (query + tl.load(w + h * DIM + d))
    skew = lane[:, None] - lane[None, :] + TILE - 1
    largest = tl.full([TILE, 1], float("-inf"), tl.float32)
    total = tl.zeros([TILE, 1], tl.float32)
    sums = tl.zeros([TILE, DIM], tl.float32)
    for first in range(0, tokens, TILE):
        j = first + lane
        there = (j < tokens)[:, None]
        keys = tl.load(k + (h * tokens + j[:, None]) * DIM + d, mask=there, other=0.0)
        values = tl.load(v + (h * tokens + j[:, None]) * DIM + d, mask=there, other=0.0)
        # All offsets that the tile needs: the first query with the last key comes first.
        row = tl.program_id(0) * TILE - first + column - TILE + tokens
        inside = ((row >= 0) & (row < 2 * tokens - 1))[:, None]
        offsets = tl.load(r + (h * (2 * tokens - 1) + row[:, None]) * DIM + d, mask=inside, other=0.0)
        band = tl.dot(relative, tl.trans(offsets), input_precision="ieee")
        score = tl.dot(content, tl.trans(keys), input_precision="ieee") + tl.gather(band, skew, 1)
        score = tl.where(j < tokens, score, float("-inf"))
        top = tl.maximum(largest, tl.max(score, 1, keep_dims=True))
        weight = tl.exp(score - top)
        rescale = tl.exp(largest - top)
        total = total * rescale + tl.sum(weight, 1, keep_dims=True)
        sums = sums * rescale + tl.dot(weight, values, input_precision="ieee")
        largest = top
    tl.store(out + (h * tokens + i[:, None]) * DIM + d, sums / total, mask=here)
