"""Where wrong elements lie, in words that point at a cause: a tail, a stripe, one head, every eighth row."""

# torch's stubs leave most Tensor methods partially unknown
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from collections.abc import Iterator, Sequence
from itertools import pairwise

import torch

from toolkits.core.judge.rules import slices

Tensor = torch.Tensor


def describe(got: Tensor, want: Tensor, tolerance: float, axes: Sequence[str]) -> str:
    """The share of wrong elements and their pattern along each named axis."""
    wrong = wrong_elements(got, want, tolerance)
    count = int(wrong.sum())
    if not count:
        return "no single element stands out"
    named = [pattern for axis, name in enumerate(axes) if (pattern := _along(wrong, axis, name))]
    where = ", ".join(named) if named else "spread over the whole tensor"
    return f"{count} of {wrong.numel()} elements wrong: {where}"


def wrong_elements(got: Tensor, want: Tensor, tolerance: float) -> Tensor:
    """Elements whose error is above `tolerance` times the larger of their own size and the tensor's RMS."""
    if not want.is_floating_point():
        return got != want
    parts = [y[torch.isfinite(y)].square().sum() for _, _, y in _doubles(got, want)]
    rms = (torch.stack(parts).sum() / want.numel()).sqrt()
    wrong = torch.empty(want.numel(), dtype=torch.bool)
    for start, x, y in _doubles(got, want):
        finite = torch.isfinite(x) & torch.isfinite(y)
        scale = torch.maximum(y.abs(), rms).clamp_min(1e-30)
        wrong[start : start + len(x)] = torch.where(finite, (x - y).abs() > tolerance * scale, x != y)
    return wrong.view(want.shape)


def _doubles(got: Tensor, want: Tensor) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Slices of both in float64, so that a large output is not copied whole."""
    for start, x, y in slices(got, want):
        yield start, x.double(), y.double()


def _along(wrong: Tensor, axis: int, name: str) -> str:
    """How the wrong indices of one axis are chosen, or empty when all of them are touched."""
    others = [other for other in range(wrong.dim()) if other != axis]
    touched = wrong.any(dim=others) if others else wrong
    indices = touched.nonzero().flatten().tolist()
    size = len(touched)
    if len(indices) == size:
        return ""
    if len(indices) == 1:
        return f"only {name} {indices[0]}"
    steps = {after - before for before, after in pairwise(indices)}
    if len(steps) > 1:
        return f"{len(indices)} of {size} {name}, irregular"
    step = steps.pop()
    if step > 1:
        return f"every {step}th {name} from {indices[0]}"
    if indices[-1] == size - 1:
        return f"the last {len(indices)} of {size} {name} (a tail)"
    if indices[0] == 0:
        return f"the first {len(indices)} of {size} {name}"
    return f"{name} {indices[0]} to {indices[-1]} of {size} (a stripe)"
