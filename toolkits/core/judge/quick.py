"""The rules that measure rows, all from one pass over an output: for answers that pass, as nearly all do.

One that does not pass, or is not finite, is left to rules.py, which also says where it is wrong.
"""

# torch's stubs leave most Tensor methods partially unknown
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

import math

import torch

from toolkits.core.judge.inputs import Case
from toolkits.core.judge.rules import SLICE
from toolkits.core.schema import Check

Tensor = torch.Tensor
RULES = ("rel_l2", "fla", "worst_row")


class Rows:
    """Float64 norms of the rows of an output's error and of its expected values."""

    def __init__(self, case: Case, name: str, got: Tensor) -> None:
        want = case.expected[name]
        if name not in case.norms:
            case.norms[name] = _Wanted(want)
        self._want: _Wanted = case.norms[name]
        self._error = torch.linalg.vector_norm(got.to(torch.float64).sub_(want), dim=-1).flatten()
        self.finite = self._want.finite and math.isfinite(float(self._error.sum()))

    def error(self, rule: str) -> float:
        """In the rule's own measure, as rules.py has it."""
        if rule == "worst_row":
            return float((self._error / self._want.floored).max())
        return float(torch.linalg.vector_norm(self._error)) / self._want.total


class _Wanted:
    """The same of expected values, which many answers are compared with."""

    def __init__(self, want: Tensor) -> None:
        norm = torch.linalg.vector_norm(want.double(), dim=-1).flatten()
        self.finite = math.isfinite(float(norm.sum()))
        self.floored = torch.maximum(norm, 0.1 * norm.median().clamp_min(1e-30))
        self.total = float(torch.linalg.vector_norm(norm)) + 1e-30


def rows_of(checks: list[Check], case: Case, outputs: dict[str, Tensor]) -> dict[str, Rows]:
    """The rows of each output that such a check looks at, if they are finite and no more than is held at a time."""
    names = {check.output for check in checks if check.rule in RULES}
    fit = [n for n in names if outputs[n].is_floating_point() and outputs[n].dim() and 0 < outputs[n].numel() <= SLICE]
    rows = {name: Rows(case, name, outputs[name]) for name in fit}
    return {name: each for name, each in rows.items() if each.finite}
