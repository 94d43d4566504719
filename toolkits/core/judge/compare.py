"""Is an output right, and if not, where and by how much. Pure functions over tensors; the rules are in rules.py.

Each check of a task gives a Finding. Non-finite values must stand exactly where the reference has them, whatever the
rule.
"""

# torch's stubs leave most Tensor methods partially unknown
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import torch

from toolkits.core.judge.inputs import Case
from toolkits.core.judge.patterns import describe
from toolkits.core.judge.quick import RULES as QUICK_RULES
from toolkits.core.judge.quick import Rows, rows_of
from toolkits.core.judge.rules import RULES, slices
from toolkits.core.judge.worker import DTYPES
from toolkits.core.schema import Check, Task

Tensor = torch.Tensor
NAMED = {"window": "bounds", "argmin": "costs", "fa": "low_precision"}
"""The parameter of a rule that names a further tensor of the case."""


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


def findings(task: Task, case: Case, outputs: dict[str, Tensor]) -> list[Finding]:
    """What every check of the task sees, in the task's order; a bad one with the pattern of what is wrong."""
    scale = task.distributions[case.distribution].tolerance_scale
    rows = rows_of(task.checks, case, outputs)
    found = [_quickly(c, rows, scale) or apply(c, case, outputs[c.output], scale) for c in task.checks]
    return [f if f.ok else _with_pattern(task, case, f, outputs[f.output]) for f in found]


def _quickly(check: Check, rows: dict[str, Rows], scale: float) -> Finding | None:
    """The finding of a check that passes by the rows alone; None: look closely."""
    if check.rule not in QUICK_RULES or check.output not in rows:
        return None
    error, tolerance = rows[check.output].error(check.rule), check.tolerance * scale
    return Finding(True, check.rule, check.output, error, tolerance) if error <= tolerance else None


def first_bad(found: Iterable[Finding]) -> Finding | None:
    """The one that refuses the outputs, or None."""
    return next((finding for finding in found if not finding.ok), None)


def check_outputs(task: Task, case: Case, outputs: dict[str, Tensor]) -> Finding | None:
    """The first finding that fails among all checks of the task, or None."""
    return first_bad(findings(task, case, outputs))


def _with_pattern(task: Task, case: Case, finding: Finding, got: Tensor) -> Finding:
    axes = task.outputs[finding.output].shape or []
    pattern = describe(got, case.expected[finding.output], finding.tolerance, axes)
    return replace(finding, where=f"{finding.where}; {pattern}")


def apply(check: Check, case: Case, got: Tensor, scale: float = 1.0) -> Finding:
    """One rule on one output."""
    want = case.expected[check.output]
    tolerance = check.tolerance * scale
    if got.numel() == 0:
        return Finding(True, check.rule, check.output, 0.0, tolerance)
    if broken := _no_bool(check, got, tolerance) or _non_finite(check, got, want, tolerance):
        return broken
    error, worst = RULES[check.rule](got, want, case, check.parameters, tolerance)
    ok = error <= tolerance
    where = "" if ok else _where(check, got, want, worst)
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
    return Finding(False, check.rule, check.output, math.inf, tolerance, "wrong_values", where)


def _non_finite(check: Check, got: Tensor, want: Tensor, tolerance: float) -> Finding | None:
    if not got.is_floating_point():
        return None
    for start, x, y in slices(got, want):
        # The sum is finite unless an element is not, or the sum overflows: a cheap test for the common case.
        if bool(torch.isfinite(x.sum())) and bool(torch.isfinite(y.sum())):
            continue
        wrong = torch.where(torch.isfinite(y), ~torch.isfinite(x), x.double() != y.double())
        if bool(wrong.any()):
            worst = int(wrong.to(torch.uint8).argmax())
            cause = "nan_in_output" if bool(torch.isnan(x[worst])) else "non_finite_differs"
            where = _element(got, want, start + worst)
            return Finding(False, check.rule, check.output, math.inf, tolerance, cause, where)
    return None


def _where(check: Check, got: Tensor, want: Tensor, worst: int) -> str:
    if "across" not in check.parameters:
        return _element(got, want, worst)
    return f"slice 0 along axis {check.parameters['across']} has other bits than the element at {_index(want, worst)}"


def _element(got: Tensor, want: Tensor, flat: int) -> str:
    values = got.flatten()[flat].item(), want.flatten()[flat].item()
    shown = [f"{value:.6g}" for value in values]
    if shown[0] == shown[1]:
        shown = [repr(value) for value in values]
    return f"worst at {_index(want, flat)}: got {shown[0]}, want {shown[1]}"


def _index(tensor: Tensor, flat: int) -> str:
    """As torch.unravel_index, whose first call takes a quarter of a second of imports."""
    places: list[str] = []
    for size in reversed(tensor.shape):
        flat, place = divmod(flat, size)
        places.append(str(place))
    return f"[{','.join(reversed(places))}]"


def bad_reference(task: Task, case: Case) -> str:
    """Why a case's expected values cannot judge anybody, or empty: rounded as an output, they must pass themselves."""
    under = f"under distribution {case.distribution!r}"
    for check in task.checks:
        if problem := _misfit(check, case):
            return f"check {check.rule} of {check.output} needs {problem} {under}"
    for name in task.outputs:
        if bool(torch.isnan(case.expected[name]).any()):
            return f"the reference's {name} holds NaN {under}"
    outputs = {name: case.expected[name].to(DTYPES[spec.dtype]) for name, spec in task.outputs.items()}
    if finding := check_outputs(task, case, outputs):
        return f"the reference does not pass its own check {under}: {finding}"
    return ""


def _misfit(check: Check, case: Case) -> str:
    """What a rule needs of the case and does not get, or empty."""
    want, name = case.expected[check.output], str(check.parameters.get(NAMED.get(check.rule, ""), ""))
    named: Any = (case.inputs if check.rule == "window" else case.expected).get(name)
    if name and not isinstance(named, Tensor):
        return f"a tensor {name!r}, which the reference does not give"
    if check.rule == "fa" and named.shape != want.shape:
        return f"{name} in the output's shape {list(want.shape)}, not {list(named.shape)}"
    if check.rule == "argmin" and named.shape[:-1] != want.shape:
        return f"{name} in the output's shape and one axis of choices more, not {list(named.shape)}"
    if check.rule == "window" and want.dim() != 3:
        return "an output [tokens, heads, dim]"
    if not 0 <= int(check.parameters.get("across", 0)) < max(want.dim(), 1):
        return f"an axis 0 to {want.dim() - 1} in `across`"
    return ""
