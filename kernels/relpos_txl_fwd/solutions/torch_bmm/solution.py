"""Relative attention in torch operations on blocks of queries, with scratch kept per shape."""

from functools import lru_cache

import torch
from torch import Tensor

BLOCK = 128


class Scratch:
    def __init__(self, heads: int, tokens: int, dim: int) -> None:
        self.descending = torch.arange(2 * tokens - 2, -1, -1)
        self.offsets = torch.empty(heads, 2 * tokens - 1, dim)  # row m belongs to j - i = m - (tokens - 1)
        self.content = torch.empty(heads, tokens, dim)
        self.relative = torch.empty(heads, tokens, dim)
        self.band = torch.empty(heads * BLOCK * (tokens + BLOCK - 1))
        self.scores = torch.empty(heads * BLOCK * tokens)


scratch = lru_cache(maxsize=8)(Scratch)


def relpos_txl_fwd(
    q: Tensor, k: Tensor, v: Tensor, r: Tensor, u: Tensor, w: Tensor, scale: float, out: Tensor
) -> None:  # fmt: skip
    heads, tokens, dim = q.shape
    s = scratch(heads, tokens, dim)
    torch.index_select(r, 1, s.descending, out=s.offsets)
    torch.add(q, u.unsqueeze(1), out=s.content).mul_(scale)
    torch.add(q, w.unsqueeze(1), out=s.relative).mul_(scale)
    for start in range(0, tokens, BLOCK):
        rows = slice(start, min(start + BLOCK, tokens))
        scores = s.scores[: heads * (rows.stop - start) * tokens].view(heads, -1, tokens)
        torch.baddbmm(_shifted(s, rows, tokens), s.content[:, rows], k.mT, out=scores)
        torch.softmax(scores, -1, out=scores)
        torch.bmm(scores, v, out=out[:, rows])


def _shifted(s: Scratch, rows: slice, tokens: int) -> Tensor:
    """The offset term of some queries: their band of offsets, each row seen one column earlier than the row before."""
    heads, count = s.content.shape[0], rows.stop - rows.start
    width = tokens + count - 1
    band = s.band[: heads * count * width].view(heads, count, width)
    first = tokens - rows.stop
    torch.bmm(s.relative[:, rows], s.offsets[:, first : first + width].mT, out=band)
    return band.as_strided((heads, count, tokens), (count * width, width - 1, 1), count - 1)
