"""A program a sequence, a head and a block of values, in chunks of sixteen tokens: a triangular system, then products.

With E the running product of the decays in a chunk, K+ = k E, K- = k / E, Q+ = scale q E, and S the state before:
(I + strict(b K+ K-^T)) U = b (v - K+ S),   out = Q+ S + lower(Q+ K-^T) U,   S <- E_last (S + K-^T U).
"""

import triton
import triton.language as tl
from torch import Tensor


def kda_prefill(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, A_log: Tensor, dt_bias: Tensor, cu_seqlens: Tensor,
    initial_state: Tensor, scale: float, out: Tensor, final_state: Tensor,
) -> None:  # fmt: skip
    sequences, heads, dim, _ = initial_state.shape
    grid = (dim // 64, heads, sequences)
    arguments = (q, k, v, g, beta, A_log, dt_bias, cu_seqlens, initial_state, scale, out, final_state)
    # E goes down to exp(-5 * 2^LEVELS), which float32 must hold.
    _chunks[grid](*arguments, heads, DIM=dim, VALUES=64, LEVELS=4, num_warps=8)


@triton.jit
def _chunks(
    q, k, v, g, beta, A_log, dt_bias, cu_seqlens, initial_state, scale, out, final_state, heads,
    DIM: tl.constexpr, VALUES: tl.constexpr, LEVELS: tl.constexpr,
):  # fmt: skip
    h, n = tl.program_id(1).to(tl.int64), tl.program_id(2).to(tl.int64)
    CHUNK: tl.constexpr = 1 << LEVELS
    lane, i = tl.arange(0, CHUNK), tl.arange(0, DIM)
    j = tl.program_id(0) * VALUES + tl.arange(0, VALUES)
    earlier = lane[:, None] > lane[None, :]
    own = (n * heads + h) * DIM * DIM + j[None, :] * DIM + i[:, None]
    state = tl.load(initial_state + own)
    slope = tl.exp(tl.load(A_log + h))
    bias = tl.load(dt_bias + h * DIM + i)
    end = tl.load(cu_seqlens + n + 1)
    for first in range(tl.load(cu_seqlens + n), end, CHUNK):
        t = first + lane
        inside = (t < end)[:, None]
        at = (t[:, None] * heads + h) * DIM
        query = scale * _unit(tl.load(q + at + i, mask=inside, other=0.0))
        key = _unit(tl.load(k + at + i, mask=inside, other=0.0))
        gate = tl.load(g + at + i, mask=inside, other=0.0) + bias
        decay = tl.where(inside, -5.0 * tl.sigmoid(slope * gate), 0.0)
        strength = tl.sigmoid(tl.load(beta + t[:, None] * heads + h, mask=inside, other=float("-inf")))
        growth = tl.exp(tl.cumsum(decay, 0))
        plus, minus, reach = key * growth, tl.trans(key / growth), query * growth
        scores = tl.where(earlier, strength * tl.dot(plus, minus, input_precision="ieee"), 0.0)
        wrong = tl.load(v + at + j, mask=inside, other=0.0) - tl.dot(plus, state, input_precision="ieee")
        update = tl.dot(_inverse(scores, lane, LEVELS), strength * wrong, input_precision="ieee")
        read = tl.where(earlier | (lane[:, None] == lane), tl.dot(reach, minus, input_precision="ieee"), 0.0)
        result = tl.dot(reach, state, input_precision="ieee") + tl.dot(read, update, input_precision="ieee")
        tl.store(out + at + j, result, mask=inside)
        state += tl.dot(minus, update, input_precision="ieee")
        state *= tl.exp(tl.sum(decay, 0))[:, None]
    tl.store(final_state + own, state)


@triton.jit
def _unit(x):
    return x / tl.sqrt(tl.sum(x * x, 1, keep_dims=True) + 1e-6)


@triton.jit
def _inverse(scores, lane, LEVELS: tl.constexpr):
    """Of I + scores, a strict lower triangle: blocks of 1, 2, 4, .. rows, each from the inverses of its halves."""
    inverse = tl.where(lane[:, None] == lane, 1.0, 0.0)
    for level in tl.static_range(LEVELS):
        block = lane >> level
        pair = (block[:, None] // 2 == block // 2) & (block[:, None] > block)
        below = tl.dot(inverse, tl.where(pair, scores, 0.0), input_precision="ieee")
        inverse -= tl.dot(below, inverse, input_precision="ieee")
    return inverse
