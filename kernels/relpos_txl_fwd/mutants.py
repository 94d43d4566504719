"""Transformer-XL relative attention done wrong, one named defect a function, and once right.

`faithful` is an independent second form (tiles, a band of offsets a tile, online softmax) that must be accepted; every
mutant is the same code with one defect and must be rejected under at least one distribution.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

TILE = 32


def _attention(
    q: Tensor, k: Tensor, v: Tensor, r: Tensor, u: Tensor, w: Tensor, scale: float, out: Tensor, bug: str = ""
) -> None:
    tokens, dim = q.shape[1:]
    scale = {"no_scale": 1.0, "scale_recomputed": dim**-0.5}.get(bug, scale)
    u, w = _biases(u, w, bug)
    content = (q + u.unsqueeze(1)) * scale
    relative = (q + w.unsqueeze(1)) * (1.0 if bug == "offsets_not_scaled" else scale)
    for i0 in range(0, tokens, TILE):
        queries = slice(i0, min(i0 + TILE, tokens))
        if bug == "tail_queries_dropped" and queries.stop - i0 < TILE:
            out[:, queries] = 0.0
            continue
        out[:, queries] = _query_tile(content[:, queries], relative[:, queries], queries, k, v, r, bug)


def _biases(u: Tensor, w: Tensor, bug: str) -> tuple[Tensor, Tensor]:
    if bug == "no_u":
        return torch.zeros_like(u), w
    if bug == "no_w":
        return u, torch.zeros_like(w)
    if bug == "biases_swapped":
        return w, u
    if bug == "biases_of_first_head":
        return u[:1].expand_as(u), w[:1].expand_as(w)
    return u, w


def _query_tile(
    content: Tensor, relative: Tensor, queries: slice, k: Tensor, v: Tensor, r: Tensor, bug: str
) -> Tensor:  # fmt: skip
    """Online softmax over the key tiles."""
    heads, tokens, dim = k.shape
    count = queries.stop - queries.start
    largest = torch.full((heads, count, 1), 0.0 if bug == "no_maximum" else -torch.inf)
    total, sums = torch.zeros(heads, count, 1), torch.zeros(heads, count, dim)
    for j0 in range(0, tokens, TILE):
        keys = slice(j0, min(j0 + TILE, tokens))
        if bug == "tail_keys_dropped" and j0 > 0 and keys.stop - j0 < TILE:
            continue
        scores = _scores(content, relative, queries, keys, k, r, bug)
        new = largest if bug == "no_maximum" else torch.maximum(largest, scores.amax(-1, keepdim=True))
        rescale = torch.ones_like(new) if bug == "sums_not_rescaled" else torch.exp(largest - new)
        weights = torch.exp(scores - new)
        if bug == "bfloat16_weights":
            weights = weights.bfloat16().float()
        total = total * (1.0 if bug == "total_not_rescaled" else rescale) + weights.sum(-1, keepdim=True)
        sums = sums * rescale + weights @ v[:, keys]
        largest = new
    return sums if bug == "not_normalised" else sums / total


def _scores(
    content: Tensor, relative: Tensor, queries: slice, keys: slice, k: Tensor, r: Tensor, bug: str
) -> Tensor:  # fmt: skip
    """The tile's offsets span queries + keys - 1 rows of the table: one product, then a skewed gather."""
    heads, tokens = k.shape[:2]
    i = torch.arange(queries.start, queries.stop)[:, None]
    j = torch.arange(keys.start, keys.stop)[None, :]
    row = _table_row(i, j, tokens, bug)
    low, high = int(row.min()), int(row.max())
    band = relative @ r[:, low : high + 1].mT
    scores = content @ k[:, keys].mT + band.gather(2, (row - low).expand(heads, *row.shape))
    if bug == "padded_keys_count" and j.shape[1] < TILE:
        # A tile filled up with zero keys, whose scores of zero enter the softmax and whose values are zero.
        scores = torch.logaddexp(scores, torch.zeros_like(scores))
    return scores.masked_fill(j > i, -torch.inf) if bug == "causal" and queries.start >= keys.start else scores


def _table_row(i: Tensor, j: Tensor, tokens: int, bug: str) -> Tensor:
    if bug == "offset_sign":
        return j - i + tokens - 1
    if bug == "offset_one_late":
        return (i - j + tokens).clamp_max(2 * tokens - 2)
    if bug == "offset_one_early":
        return (i - j + tokens - 2).clamp_min(0)
    if bug == "absolute_offset":
        return (i - j).abs() + tokens - 1
    if bug == "not_shifted":
        return j.expand(i.shape[0], -1)
    return i - j + tokens - 1


def faithful(*arguments: Any) -> None:
    _attention(*arguments)


def _mutant(bug: str) -> Callable[..., None]:
    def mutant(*arguments: Any) -> None:
        _attention(*arguments, bug=bug)

    return mutant


# Which offset belongs to which pair.
offset_sign = _mutant("offset_sign")
offset_one_late = _mutant("offset_one_late")
offset_one_early = _mutant("offset_one_early")
absolute_offset = _mutant("absolute_offset")
not_shifted = _mutant("not_shifted")
# The terms of a score.
no_u = _mutant("no_u")
no_w = _mutant("no_w")
biases_swapped = _mutant("biases_swapped")
biases_of_first_head = _mutant("biases_of_first_head")
offsets_not_scaled = _mutant("offsets_not_scaled")
no_scale = _mutant("no_scale")
scale_recomputed = _mutant("scale_recomputed")
causal = _mutant("causal")
# Softmax over tiles.
no_maximum = _mutant("no_maximum")
sums_not_rescaled = _mutant("sums_not_rescaled")
total_not_rescaled = _mutant("total_not_rescaled")
not_normalised = _mutant("not_normalised")
bfloat16_weights = _mutant("bfloat16_weights")
# Tiles that are not full.
tail_keys_dropped = _mutant("tail_keys_dropped")
tail_queries_dropped = _mutant("tail_queries_dropped")
padded_keys_count = _mutant("padded_keys_count")

MUTANTS = [
    "offset_sign", "offset_one_late", "offset_one_early", "absolute_offset", "not_shifted", "no_u", "no_w",
    "biases_swapped", "biases_of_first_head", "offsets_not_scaled", "no_scale", "scale_recomputed", "causal",
    "no_maximum", "sums_not_rescaled", "total_not_rescaled", "not_normalised", "bfloat16_weights",
    "tail_keys_dropped", "tail_queries_dropped", "padded_keys_count",
]  # fmt: skip
