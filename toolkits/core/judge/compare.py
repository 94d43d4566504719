"""The acceptance rules: is an output right, and if not, where and by how much. Pure functions over tensors.

A rule returns a Finding. Non-finite values must stand exactly where the reference has them, whatever the rule.
"""

# torch's stubs leave most Tensor methods partially unknown
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from toolkits.core.judge.inputs import Case
from toolkits.core.judge.patterns import describe
from toolkits.core.judge.worker import DTYPES
from toolkits.core.schema import Check, Task

Tensor = torch.Tensor
Parameters = dict[str, float | int | str]
FIB_EPSILON = 1e-8
SPOT_ELEMENTS = 65_536
SPOT_FACTOR = 10.0
SPOT_TOLERANCE = 0.05
"""Relative L2 of a block: ten times the check's own tolerance, since a block is not the whole, and never above this."""


@dataclass(frozen=True)
class Finding:
    """What a rule saw. `error` is in the rule's own measure and passes when at most `tolerance`."""

    ok: bool
    rule: str
    output: str
    error: float
    tolerance: float
    cause: str = ""
    where: str = ""
    """The worst element: index, got, want."""

    def __str__(self) -> str:
        return f"{self.output}: {self.rule} {self.error:.3g}, allowed {self.tolerance:.3g}" + (
            f"; {self.where}" if self.where else ""
        )


def check_outputs(task: Task, case: Case, outputs: dict[str, Tensor]) -> Finding | None:
    """The first finding that fails among all checks of the task, or None."""
    scale = task.distributions[case.distribution].tolerance_scale
    for check in task.checks:
        finding = apply(check, case, outputs[check.output], scale)
        if not finding.ok:
            return _with_pattern(task, case, finding, outputs[check.output])
    return None


def _with_pattern(task: Task, case: Case, finding: Finding, got: Tensor) -> Finding:
    axes = task.outputs[finding.output].shape or []
    pattern = describe(got, case.expected[finding.output], finding.tolerance, axes)
    return replace(finding, where=f"{finding.where}; {pattern}")


def spot_check(task: Task, case: Case, outputs: dict[str, Tensor]) -> Finding | None:
    """As check_outputs, but of large floating outputs only a random block: enough to see old or missing content."""
    for check in task.checks:
        got, want = outputs[check.output], case.expected[check.output]
        if got.numel() <= SPOT_ELEMENTS or not got.is_floating_point():
            finding = apply(check, case, got, task.distributions[case.distribution].tolerance_scale)
        else:
            start = secrets.randbelow(got.numel() - SPOT_ELEMENTS + 1)
            block = slice(start, start + SPOT_ELEMENTS)
            scale = task.distributions[case.distribution].tolerance_scale
            tolerance = min(SPOT_TOLERANCE, SPOT_FACTOR * check.tolerance * scale)
            loose = Check(output=check.output, rule="rel_l2", tolerance=tolerance)
            finding = apply(loose, case, got.flatten()[block], 1.0, want.flatten()[block])
        if not finding.ok:
            return finding
    return None


def apply(check: Check, case: Case, got: Tensor, scale: float = 1.0, block: Tensor | None = None) -> Finding:
    """One rule on one output, or on a block of it with the block's expected values."""
    want = case.expected[check.output] if block is None else block
    tolerance = check.tolerance * scale
    if got.numel() == 0:
        return Finding(True, check.rule, check.output, 0.0, tolerance)
    if broken := _no_bool(check, got, tolerance) or _non_finite(check, got, want, tolerance):
        return broken
    measure = _RULES[check.rule]
    error, worst = measure(got, want, case, check.parameters, tolerance)
    ok = error <= tolerance
    where = "" if ok else _element(got, want, worst)
    return Finding(ok, check.rule, check.output, error, tolerance, "" if ok else "wrong_values", where)


def _no_bool(check: Check, got: Tensor, tolerance: float) -> Finding | None:
    """A byte other than 0 and 1 reads as true and is none: mostly an element that was not written."""
    if got.dtype is not torch.bool:
        return None
    values = got.flatten().view(torch.uint8)
    worst = int(values.argmax())
    if values[worst] <= 1:
        return None
    where = f"element {worst} of the flat tensor holds the byte {int(values[worst])}, neither 0 nor 1"
    return Finding(False, check.rule, check.output, float("inf"), tolerance, "wrong_values", where)


def _non_finite(check: Check, got: Tensor, want: Tensor, tolerance: float) -> Finding | None:
    if not got.is_floating_point():
        return None
    # The sum is finite unless an element is not, or the sum overflows: a cheap test for the common case.
    if bool(torch.isfinite(got.sum())) and bool(torch.isfinite(want.sum())):
        return None
    finite = torch.isfinite(want)
    wrong = torch.where(finite, ~torch.isfinite(got), got.double() != want.double())
    if not bool(wrong.any()):
        return None
    worst = int(wrong.flatten().to(torch.uint8).argmax())
    cause = "nan_in_output" if bool(torch.isnan(got.flatten()[worst])) else "non_finite_differs"
    return Finding(False, check.rule, check.output, float("inf"), tolerance, cause, _element(got, want, worst))


def _element(got: Tensor, want: Tensor, flat: int) -> str:
    index = ",".join(str(int(i)) for i in torch.unravel_index(torch.tensor(flat), want.shape))
    return f"worst at [{index}]: got {got.flatten()[flat].item():.6g}, want {want.flatten()[flat].item():.6g}"


def _finite_pair(got: Tensor, want: Tensor) -> tuple[Tensor, Tensor]:
    """Both in float64, with positions where the reference is not finite taken out. The first is a copy to work in."""
    if bool(torch.isfinite(want.sum())):
        return got.to(torch.float64, copy=True), want.double()
    finite = torch.isfinite(want)
    zero = torch.zeros((), dtype=torch.float64)
    return torch.where(finite, got.double(), zero), torch.where(finite, want.double(), zero)


Measured = tuple[float, int]
"""Error in the rule's measure, and the flat index of the worst element."""


def _allclose(got: Tensor, want: Tensor, case: Case, parameters: Parameters, tolerance: float) -> Measured:
    """Excess of |e| over atol + rtol*|want|, as a multiple of atol; `matched_ratio` lets a share of elements exceed."""
    x, y = _finite_pair(got, want)
    excess = (x - y).abs() - float(parameters.get("rtol", 0.0)) * y.abs()
    worst = int(excess.flatten().argmax())
    allowed = 1.0 - float(parameters.get("matched_ratio", 1.0))
    if allowed > 0.0 and float((excess > tolerance).double().mean()) <= allowed:
        return 0.0, worst
    return float(excess.flatten()[worst]), worst


def _rel_l2(got: Tensor, want: Tensor, case: Case, parameters: Parameters, tolerance: float) -> Measured:
    """||got - want|| / ||want||."""
    x, y = _finite_pair(got, want)
    difference = x.sub_(y)
    error = float(torch.linalg.vector_norm(difference) / (torch.linalg.vector_norm(y) + 1e-30))
    return error, _worst(difference, error, tolerance)


def _worst(difference: Tensor, error: float, tolerance: float) -> int:
    """Flat index of the largest difference; only looked for when it will be shown."""
    return int(difference.abs().flatten().argmax()) if error > tolerance else 0


def _worst_row(got: Tensor, want: Tensor, case: Case, parameters: Parameters, tolerance: float) -> Measured:
    """Largest relative L2 of a row (last axis), row norms floored at 10 % of the median row."""
    x, y = _finite_pair(got, want)
    norms = torch.linalg.vector_norm(y, dim=-1)
    floor = 0.1 * norms.median().clamp_min(1e-30)
    difference = x.sub_(y)
    rows = torch.linalg.vector_norm(difference, dim=-1) / torch.maximum(norms, floor)
    worst_row = int(rows.flatten().argmax())
    within = difference.reshape(-1, y.shape[-1])[worst_row].abs().argmax()
    return float(rows.max()), worst_row * y.shape[-1] + int(within)


def _window(got: Tensor, want: Tensor, case: Case, parameters: Parameters, tolerance: float) -> Measured:
    """Largest relative L2 over (sequence, head, window of `size` tokens), norms floored at 5 % of the median window.

    The output is [tokens, heads, dim]; `bounds` names the input that holds the sequence boundaries.
    """
    x, y = _finite_pair(got, want)
    window = _window_ids(case.inputs[str(parameters["bounds"])], int(parameters["size"]))
    count = int(window.max()) + 1
    squares = torch.zeros(2, count, y.shape[1], dtype=torch.float64)
    difference = x.sub_(y)
    squares[0].index_add_(0, window, difference.square().sum(-1))
    squares[1].index_add_(0, window, y.square().sum(-1))
    error, norm = squares[0].sqrt(), squares[1].sqrt()
    ratio = error / torch.maximum(norm, 0.05 * norm.median().clamp_min(1e-30))
    return float(ratio.max()), _worst(difference, float(ratio.max()), tolerance)


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
    if int(got.min()) < 0 or int(got.max()) >= costs.shape[-1]:
        bad = int(((got < 0) | (got >= costs.shape[-1])).flatten().to(torch.uint8).argmax())
        return float("inf"), bad
    picked = costs.gather(-1, got.long().unsqueeze(-1)).squeeze(-1)
    best = costs.gather(-1, want.long().unsqueeze(-1)).squeeze(-1)
    excess = (picked - best) / (best + 1e-12)
    worst = int(excess.flatten().argmax())
    return float(excess.flatten()[worst]), worst


def _fib(got: Tensor, want: Tensor, case: Case, parameters: Parameters, tolerance: float) -> Measured:
    """FlashInfer-Bench: an element is bad only if both its absolute and relative error exceed the tolerance."""
    x, y = _finite_pair(got, want)
    absolute = (x - y).abs()
    error = torch.minimum(absolute, absolute / (y.abs() + FIB_EPSILON))
    worst = int(error.flatten().argmax())
    return float(error.flatten()[worst]), worst


_RULES: dict[str, Callable[[Tensor, Tensor, Case, Parameters, float], Measured]] = {
    "allclose": _allclose,
    "rel_l2": _rel_l2,
    "worst_row": _worst_row,
    "window": _window,
    "argmin": _argmin,
    "fib": _fib,
    "fla": _rel_l2,
}


def bad_reference(task: Task, case: Case) -> str:
    """Why a case's expected values cannot judge anybody, or empty: rounded as an output, they must pass themselves."""
    for name in task.outputs:
        if bool(torch.isnan(case.expected[name]).any()):
            return f"the reference's {name} holds NaN under distribution {case.distribution!r}"
    outputs = {name: case.expected[name].to(DTYPES[spec.dtype]) for name, spec in task.outputs.items()}
    if finding := check_outputs(task, case, outputs):
        return f"the reference does not pass its own check under distribution {case.distribution!r}: {finding}"
    return ""
