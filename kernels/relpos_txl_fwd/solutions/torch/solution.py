"""Relative attention by oneDNN's linear on blocks of queries, with scratch kept per shape."""

from functools import lru_cache

import torch
from torch import Tensor

BLOCK = 256


class Scratch:
    def __init__(self, heads: int, tokens: int, dim: int) -> None:
        self.descending = torch.arange(2 * tokens - 2, -1, -1)
        self.offsets = torch.empty(heads, 2 * tokens - 1, dim)  # row m belongs to j - i = m - (tokens - 1)
        self.content = torch.empty(heads, tokens, dim)
        self.relative = torch.empty(heads, tokens, dim)
        self.channels_first = torch.empty(heads, dim, tokens)
        # oneDNN's linear allocates its result. Once a 16 MB block was freed, glibc keeps blocks of that size instead of
        # returning their pages, which would be faulted in again in every call (measured: 4.5 ms against 3.0 ms).
        torch.empty(4 << 20)


scratch = lru_cache(maxsize=8)(Scratch)


def relpos_txl_fwd(
    q: Tensor, k: Tensor, v: Tensor, r: Tensor, u: Tensor, w: Tensor, scale: float, out: Tensor
) -> None:  # fmt: skip
    heads, tokens, dim = q.shape
    s = scratch(heads, tokens, dim)
    torch.index_select(r, 1, s.descending, out=s.offsets)
    torch.add(q, u.unsqueeze(1), out=s.content).mul_(scale)
    torch.add(q, w.unsqueeze(1), out=s.relative).mul_(scale)
    s.channels_first.copy_(v.mT)
    for h in range(heads):
        for start in range(0, tokens, BLOCK):
            rows = slice(start, min(start + BLOCK, tokens))
            scores = linear(s.content[h, rows], k[h])
            scores += shifted(s.relative[h, rows], s.offsets[h], tokens - rows.stop, tokens)
            torch.softmax(scores, -1, out=scores)
            out[h, rows] = linear(scores, s.channels_first[h])


def linear(x: Tensor, weights: Tensor) -> Tensor:
    """`x @ weights.T` by oneDNN, which fills the widest vectors where the BLAS behind matmul may not."""
    if torch.backends.mkldnn.is_available():
        return torch.ops.mkldnn._linear_pointwise(x, weights, None, "none", [], "")
    return x @ weights.T


def shifted(relative: Tensor, offsets: Tensor, first: int, tokens: int) -> Tensor:
    """The offset term of some queries: their band of offsets, each row seen one column earlier than the row before."""
    count = len(relative)
    width = tokens + count - 1
    band = linear(relative, offsets[first : first + width])
    return band.as_strided((count, tokens), (width - 1, 1), count - 1)
