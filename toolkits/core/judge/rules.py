"""The acceptance rules as measures: how wrong is an output, in the rule's own unit, and where most. No judgement.

Every measure walks large outputs in slices, so that float64 copies stay small beside the tensors; what fits in one
slice, as nearly everything does, is measured in one pass. Positions where the reference is not finite count nothing.
"""

# torch's stubs leave most Tensor methods partially unknown
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

import math
from collections.abc import Callable, Iterator

import torch

from toolkits.core.judge.inputs import Case

Tensor = torch.Tensor
Parameters = dict[str, float | int | str]
Measured = tuple[float, int]
"""Error in the rule's measure, and the flat index of the worst element."""
FIB_EPSILON = 1e-8
FA_SHIFT = 0.3
SLICE = 1 << 22
"""Elements that are held in float64 at a time."""
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def finite_pair(got: Tensor, want: Tensor) -> tuple[Tensor, Tensor]:
    """Both in float64, with positions where the reference is not finite taken out. The first is a copy to work in."""
    if bool(torch.isfinite(want.sum())):
        return got.to(torch.float64, copy=True), want.double()
    finite = torch.isfinite(want)
    zero = torch.zeros((), dtype=torch.float64)
    return torch.where(finite, got.double(), zero), torch.where(finite, want.double(), zero)


def slices(got: Tensor, want: Tensor, size: int = 0) -> Iterator[tuple[int, Tensor, Tensor]]:
    """Flat slices of both with the index at which they start, `size` or SLICE elements each."""
    size = size or SLICE
    got, want = got.flatten(), want.flatten()
    for start in range(0, len(got), size):
        yield start, got[start : start + size], want[start : start + size]


def _elementwise(
    got: Tensor, want: Tensor, error: Callable[[Tensor, Tensor], Tensor], parameters: Parameters
) -> Measured:
    """The largest error of an element; with `matched_ratio` the largest after that share of elements is left out."""
    skipped = int(got.numel() * (1.0 - float(parameters.get("matched_ratio", 1.0))) + 1e-9)
    largest, worst = torch.empty(0, dtype=torch.float64), (-math.inf, 0)
    for start, x, y in slices(got, want):
        errors = error(*finite_pair(x, y))
        at = int(errors.argmax())
        worst = max(worst, (float(errors[at]), start + at), key=lambda found: found[0])
        if skipped:
            both = torch.cat([largest, errors])
            largest = both.topk(min(skipped + 1, len(both))).values
    return (float(largest[-1]) if skipped else worst[0]), worst[1]


def _allclose(got: Tensor, want: Tensor, case: Case, parameters: Parameters, tolerance: float) -> Measured:
    """Excess of |got - want| over rtol*|want|, to be at most atol."""
    rtol = float(parameters.get("rtol", 0.0))
    return _elementwise(got, want, lambda x, y: (x - y).abs() - rtol * y.abs(), parameters)


def _fib(got: Tensor, want: Tensor, case: Case, parameters: Parameters, tolerance: float) -> Measured:
    """FlashInfer-Bench: an element is bad only if both its absolute and its relative error exceed the tolerance."""

    def smaller(x: Tensor, y: Tensor) -> Tensor:
        absolute = (x - y).abs()
        return torch.minimum(absolute, absolute / (y.abs() + FIB_EPSILON))

    return _elementwise(got, want, smaller, parameters)


def _fa(got: Tensor, want: Tensor, case: Case, parameters: Parameters, tolerance: float) -> Measured:
    """FlashAttention: the largest error as a multiple of that of the plain formula in low precision plus a rounding.

    `low_precision` names that formula's output among what the task's `reference` returns. The rounding is what adding
    and taking away 0.3 in the output's dtype does to the expected values. FlashAttention itself allows 2.
    """
    low: Tensor = case.expected[str(parameters["low_precision"])]
    error, worst = _elementwise(got, want, _distance, {})
    allowed = _elementwise(low, want, _distance, {})[0] + _rounding(want, got.dtype)
    if not math.isfinite(allowed):
        return math.inf, worst  # a formula that overflows would excuse everything
    if error == 0.0:
        return 0.0, worst
    return (error / allowed if allowed else math.inf), worst


def _distance(x: Tensor, y: Tensor) -> Tensor:
    return (x - y).abs().nan_to_num_(math.inf, math.inf)


def _rounding(want: Tensor, dtype: torch.dtype) -> float:
    largest = 0.0
    for _, part, _ in slices(want, want):
        rounded = part.to(dtype)
        moved = (rounded + FA_SHIFT - FA_SHIFT - rounded).abs().nan_to_num(0.0)
        largest = max(largest, float(moved.max()))
    return largest


def _identical(got: Tensor, want: Tensor, case: Case, parameters: Parameters, tolerance: float) -> Measured:
    """Elements that differ in any bit from the expected value in the output's dtype: +0 and -0 differ.

    With `across`, the number of an axis, from the first of the slices along it (simulated ranks); the expected values
    then play no part, so such an output needs a second check for its values.
    """
    if "across" in parameters:
        first = got.select(int(parameters["across"]), 0).unsqueeze(int(parameters["across"]))
        want = first.expand_as(got)
    bits = _BITS[got.element_size()]
    count, worst = 0, -1
    for start, x, y in slices(got, want):
        differ = x.view(bits) != y.to(got.dtype).view(bits)
        count += int(differ.sum())
        if worst < 0 and count:
            worst = start + int(differ.to(torch.uint8).argmax())
    return float(count), max(worst, 0)


def _rel_l2(got: Tensor, want: Tensor, case: Case, parameters: Parameters, tolerance: float) -> Measured:
    """||got - want|| / ||want||."""
    errors: list[float] = []
    norms: list[float] = []
    worst = (-1.0, 0)
    for start, got_part, want_part in slices(got, want):
        x, y = finite_pair(got_part, want_part)
        difference = x.sub_(y)
        errors.append(float(torch.linalg.vector_norm(difference)))
        norms.append(float(torch.linalg.vector_norm(y)))
        if errors[-1] > tolerance * norms[-1]:  # else it will hardly be shown
            at = int(difference.abs_().argmax())
            worst = max(worst, (float(difference[at]), start + at))
    return math.hypot(*errors) / (math.hypot(*norms) + 1e-30), worst[1]


def _worst_row(got: Tensor, want: Tensor, case: Case, parameters: Parameters, tolerance: float) -> Measured:
    """Largest relative L2 of a row (last axis), row norms floored at 10 % of the median row."""
    width = want.shape[-1]
    errors: list[Tensor] = []
    norms: list[Tensor] = []
    for _, got_part, want_part in slices(got, want, max(1, SLICE // width) * width):
        x, y = finite_pair(got_part, want_part)
        norms.append(torch.linalg.vector_norm(y.view(-1, width), dim=-1))
        errors.append(torch.linalg.vector_norm(x.sub_(y).view(-1, width), dim=-1))
    norm = torch.cat(norms)
    ratio = torch.cat(errors) / torch.maximum(norm, 0.1 * norm.median().clamp_min(1e-30))
    row = int(ratio.argmax())
    x, y = finite_pair(got.reshape(-1, width)[row], want.reshape(-1, width)[row])
    return float(ratio[row]), row * width + int(x.sub_(y).abs_().argmax())


def _window(got: Tensor, want: Tensor, case: Case, parameters: Parameters, tolerance: float) -> Measured:
    """Largest relative L2 over (sequence, head, window of `size` tokens), norms floored at 5 % of the median window.

    The output is [tokens, heads, dim]; `bounds` names the input that holds the sequence boundaries.
    """
    window = _window_ids(case.inputs[str(parameters["bounds"])], int(parameters["size"]))
    squares = torch.zeros(2, int(window.max()) + 1, want.shape[1], dtype=torch.float64)
    tokens = max(1, SLICE // (want.shape[1] * want.shape[2]))
    worst = (-1.0, 0)
    for start in range(0, len(window), tokens):
        part = slice(start, start + tokens)
        x, y = finite_pair(got[part], want[part])
        difference = x.sub_(y)
        squares[0].index_add_(0, window[part], difference.square().sum(-1))
        squares[1].index_add_(0, window[part], y.square().sum(-1))
        at = int(difference.abs_().flatten().argmax())
        worst = max(worst, (float(difference.flatten()[at]), start * want.shape[1] * want.shape[2] + at))
    error, norm = squares[0].sqrt(), squares[1].sqrt()
    return float((error / torch.maximum(norm, 0.05 * norm.median().clamp_min(1e-30))).max()), worst[1]


def _window_ids(bounds: Tensor, size: int) -> Tensor:
    """For every token the number of its window; windows start anew at each sequence."""
    ids: list[int] = []
    following = 0
    for start, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        ids += [following + offset // size for offset in range(end - start)]
        following = ids[-1] + 1 if ids else 0
    return torch.tensor(ids, dtype=torch.int64)


def _argmin(got: Tensor, want: Tensor, case: Case, parameters: Parameters, tolerance: float) -> Measured:
    """Cost of the pick over the minimum, less one; `costs` names the reference's cost tensor [..., choices]."""
    costs: Tensor = case.expected[str(parameters["costs"])]
    outside = (got < 0) | (got >= costs.shape[-1])
    if bool(outside.any()):
        return math.inf, int(outside.flatten().to(torch.uint8).argmax())
    picked = costs.gather(-1, got.long().unsqueeze(-1)).squeeze(-1)
    best = costs.gather(-1, want.long().unsqueeze(-1)).squeeze(-1)
    excess = (picked - best) / (best + 1e-12)
    worst = int(excess.flatten().argmax())
    return float(excess.flatten()[worst]), worst


RULES: dict[str, Callable[[Tensor, Tensor, Case, Parameters, float], Measured]] = {
    "allclose": _allclose,
    "rel_l2": _rel_l2,
    "worst_row": _worst_row,
    "window": _window,
    "argmin": _argmin,
    "fib": _fib,
    "fla": _rel_l2,
    "fa": _fa,
    "identical": _identical,
}
