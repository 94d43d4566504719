"""Each acceptance rule passes at its edge and fails beyond it, whatever the type, the size and the odd values."""

import re
from typing import Any

import pytest
import torch
from pydantic import ValidationError

from tests.toolkits.conftest import SPEC
from toolkits.core.judge import rules
from toolkits.core.judge.closeness import WorstErrors
from toolkits.core.judge.compare import Finding, apply, bad_reference, check_outputs, findings
from toolkits.core.judge.inputs import Case
from toolkits.core.schema import Check, CheckError, Task, Workload

INFINITY = float("inf")


def _case(expected: dict[str, Any], inputs: dict[str, Any] | None = None) -> Case:
    return Case({"rows": 1, "columns": 1}, "normal", inputs or {}, expected)


def _judged(rule: str, got: Any, want: Any, tolerance: float = 0.0, **parameters: Any) -> Finding:
    """A rule on one output `y`; tensors among the parameters are further values of the reference."""
    named = {name: value for name, value in parameters.items() if isinstance(value, torch.Tensor)}
    plain = {name: name if name in named else value for name, value in parameters.items()}
    check = Check.model_validate({"output": "y", "rule": rule, "tolerance": tolerance, "parameters": plain})
    return apply(check, _case({"y": want} | named, named), got)


def _doubles(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


WANT = _doubles(1.0, 2.0, 4.0, 8.0)
BOUNDS = torch.tensor([0, 3, 4])
EDGES: list[tuple[str, dict[str, Any], torch.Tensor, torch.Tensor, float]] = [
    # rule, parameters, expected values, an error, and the tolerance that it just meets
    ("allclose", {}, WANT, _doubles(0, 0, 0.5, 0), 0.5),
    ("allclose", {"rtol": 0.125}, WANT, _doubles(0, 0, 0, 1.5), 0.5),
    ("allclose", {"matched_ratio": 0.75}, WANT, _doubles(9, 0, 0.25, 0), 0.25),
    ("rel_l2", {}, _doubles(3, 4), _doubles(0, 1.25), 0.25),
    ("fla", {}, _doubles(3, 4), _doubles(1.25, 0), 0.25),
    ("worst_row", {}, torch.stack([_doubles(3, 4), _doubles(30, 40)]), torch.stack([_doubles(0, 1.25)] * 2), 0.25),
    ("worst_row", {}, _doubles(0, 10, 10).reshape(3, 1), _doubles(0.5, 0, 0).reshape(3, 1), 0.5),
    ("window", {"bounds": BOUNDS, "size": 2}, WANT.reshape(4, 1, 1), _doubles(0, 0, 0, 2).reshape(4, 1, 1), 0.25),
    ("fib", {}, _doubles(100, 0.5), _doubles(0, 0.25), 0.25),
    ("fib", {"matched_ratio": 0.5}, _doubles(0.5, 0.5), _doubles(9, 0.25), 0.25),
    ("fa", {"low_precision": WANT + _doubles(0.5, 0, 0, 0)}, WANT, _doubles(0, 1.0, 0, 0), 2.0),
]


@pytest.mark.parametrize(("rule", "parameters", "want", "error", "tolerance"), EDGES)
def test_a_rule_passes_at_its_edge_and_fails_beyond(
    rule: str, parameters: dict[str, Any], want: torch.Tensor, error: torch.Tensor, tolerance: float
) -> None:
    at_edge = _judged(rule, want + error, want, tolerance + 1e-7, **parameters)
    assert at_edge.ok and at_edge.error == pytest.approx(tolerance, abs=1e-7), at_edge
    beyond = _judged(rule, want + error, want, tolerance - 1e-7, **parameters)
    assert not beyond.ok and beyond.cause == "wrong_values" and "worst at" in beyond.where, beyond
    assert _judged(rule, want, want, 0.0, **parameters).ok


@pytest.mark.parametrize(("rule", "parameters", "want", "error", "tolerance"), EDGES)
def test_a_large_output_is_measured_in_slices_with_the_same_result(
    rule: str,
    parameters: dict[str, Any],
    want: torch.Tensor,
    error: torch.Tensor,
    tolerance: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = _judged(rule, want + error, want, tolerance / 2, **parameters)
    for size in (1, 2, 3):
        monkeypatch.setattr(rules, "SLICE", size)
        sliced = _judged(rule, want + error, want, tolerance / 2, **parameters)
        assert sliced.error == pytest.approx(whole.error, rel=1e-14) and sliced.where == whole.where


def test_argmin_takes_any_pick_whose_cost_is_within_the_tolerance() -> None:
    costs = torch.tensor([[1.0, 1.25, 9.0], [4.0, 2.0, 2.0]], dtype=torch.float64)
    best = torch.tensor([0, 1])
    for picks, error in (([0, 2], 0.0), ([1, 1], 0.25), ([0, 0], 1.0), ([2, 1], 8.0)):
        found = _judged("argmin", torch.tensor(picks, dtype=torch.int32), best, 0.25, costs=costs)
        assert found.ok == (error <= 0.25) and found.error == pytest.approx(error), found
    for outside in ([-1, 1], [0, 3]):
        assert _judged("argmin", torch.tensor(outside, dtype=torch.int32), best, 99.0, costs=costs).error == INFINITY


def test_fa_allows_a_multiple_of_what_the_low_precision_formula_errs_plus_a_rounding() -> None:
    want = _doubles(1.0, 2.0, 3.0)
    low = want + 0.01
    rounding = (want.bfloat16() + 0.3 - 0.3 - want.bfloat16()).abs().max().item()
    assert rounding > 0.001
    got = (want + 0.05).bfloat16()
    error = (got.double() - want).abs().max().item()
    ratio = error / (0.01 + rounding)
    assert _judged("fa", got, want, ratio + 1e-6, low_precision=low).ok
    assert not _judged("fa", got, want, ratio - 1e-6, low_precision=low).ok
    # The rounding is of the output's type: in float32 nearly nothing is left of it.
    assert _judged("fa", got.float(), want, 2.0, low_precision=low).error == pytest.approx(error / 0.01, rel=1e-3)


def _attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax(q @ k.mT / 8, -1) @ v


def test_fa_passes_a_faithful_attention_in_bfloat16_and_no_mutant() -> None:
    stream = torch.Generator().manual_seed(7)
    q, k, v = (torch.randn(3, 70, 64, generator=stream).bfloat16() for _ in range(3))
    want, low = _attention(q.double(), k.double(), v.double()), _attention(q, k, v)
    scores = q.float() @ k.float().mT / 8
    weights = (scores - scores.amax(-1, keepdim=True)).exp()
    faithful = ((weights.bfloat16() @ v).float() / weights.sum(-1, keepdim=True)).bfloat16()
    assert _judged("fa", faithful, want, 2.0, low_precision=low).ok
    unscaled = _attention(q.float() * 1.02, k.float(), v.float()).bfloat16()
    short = _attention(q.float(), k[:, :69].float(), v[:, :69].float()).bfloat16()
    for mutant in (unscaled, short, torch.zeros_like(faithful)):
        assert not _judged("fa", mutant, want, 2.0, low_precision=low).ok


def test_fa_without_any_error_of_the_formula_wants_exact_values() -> None:
    want = _doubles(0.0, 0.0)
    assert _judged("fa", want, want, 2.0, low_precision=want).ok
    assert not _judged("fa", _doubles(0.0, 1e-9), want, 2.0, low_precision=want).ok


@pytest.mark.parametrize("broken", [float("nan"), INFINITY])
def test_a_low_precision_formula_that_overflows_excuses_nothing(broken: float) -> None:
    low = WANT.clone()
    low[2] = broken
    assert not _judged("fa", WANT + 1000, WANT, 2.0, low_precision=low).ok


BITS: list[tuple[torch.dtype, list[Any], list[Any], int]] = [
    (torch.float32, [0.1, 2.0], [0.1, 2.0], 0),
    (torch.float32, [0.1, 2.0000002], [0.1, 2.0], 1),
    (torch.float32, [0.0, -0.0], [0.0, 0.0], 1),
    (torch.float32, [INFINITY, 1.0], [INFINITY, 1.0], 0),
    (torch.float64, [0.1 + 1e-18, 1.0], [0.1, 1.0], 0),
    (torch.bfloat16, [1.0, 2.0], [1.001, 2.001], 0),
    (torch.float16, [1.0, 2.0], [1.01, 2.01], 2),
    (torch.int32, [3, 4], [3, 5], 1),
    (torch.int64, [2**62, 2**62 + 1], [2**62, 2**62], 1),
    (torch.bool, [True, False], [True, True], 1),
    (torch.bool, [True, False], [True, False], 0),
]


@pytest.mark.parametrize(("dtype", "got", "want", "differ"), BITS)
def test_identical_compares_bits_in_the_type_of_the_output(
    dtype: torch.dtype, got: list[Any], want: list[Any], differ: int
) -> None:
    expected = torch.tensor(want, dtype=torch.float64 if dtype.is_floating_point else dtype)
    found = _judged("identical", torch.tensor(got, dtype=dtype), expected)
    assert (found.error, found.ok) == (differ, differ == 0), found
    assert not differ or "worst at [" in found.where


def test_identical_shows_what_six_digits_would_hide() -> None:
    found = _judged("identical", torch.tensor([2.0000002]), _doubles(2.0))
    assert "got 2.000000238418579, want 2.0" in str(found), found


def test_identical_across_an_axis_compares_simulated_ranks_with_each_other() -> None:
    ranks = torch.randn(1, 5).expand(3, 5).clone()
    wrong_values = torch.zeros(3, 5, dtype=torch.float64)
    assert _judged("identical", ranks, wrong_values, across=0).ok
    ranks[2, 4] += 1
    found = _judged("identical", ranks, wrong_values, across=0)
    assert found.error == 1 and "slice 0 along axis 0" in found.where and "[2,4]" in found.where


def _valued(values: list[float], rule: str, **parameters: Any) -> Finding:
    want = _doubles(1.0, -INFINITY, 3.0)
    low = {"low_precision": want} if rule == "fa" else {}
    return _judged(rule, torch.tensor(values), want, 0.5 if rule != "identical" else 0, **low, **parameters)


@pytest.mark.parametrize("rule", ["allclose", "rel_l2", "worst_row", "fib", "fla", "fa", "identical"])
def test_values_that_are_not_finite_stand_exactly_where_the_reference_has_them(rule: str) -> None:
    assert _valued([1.0, -INFINITY, 3.0], rule).ok
    for values in ([1.0, INFINITY, 3.0], [1.0, 0.0, 3.0], [-INFINITY, -INFINITY, 3.0]):
        assert _valued(values, rule).cause == "non_finite_differs"
    assert _valued([1.0, -INFINITY, float("nan")], rule).cause == "nan_in_output"
    assert _valued([1.0, float("nan"), 3.0], rule).cause == "nan_in_output"


@pytest.mark.parametrize("rule", ["allclose", "rel_l2", "worst_row", "fib", "fla", "identical"])
def test_an_output_without_elements_is_right(rule: str) -> None:
    assert _judged(rule, torch.empty(0, 3), torch.empty(0, 3, dtype=torch.float64)).ok


@pytest.mark.parametrize("rule", ["allclose", "fib", "identical"])
@pytest.mark.parametrize("dtype", [torch.bool, torch.int32, torch.int64])
def test_integers_and_bools_are_compared_element_by_element(rule: str, dtype: torch.dtype) -> None:
    want = torch.tensor([0, 1, 1, 0], dtype=dtype)
    got = want.clone()
    assert _judged(rule, got, want).ok
    got[3] = 1
    assert "[3]" in _judged(rule, got, want).where


@pytest.mark.parametrize("rule", ["allclose", "fib"])
def test_a_matched_ratio_counts_elements_exactly(rule: str) -> None:
    want = torch.ones(10, dtype=torch.float64)
    got = want.clone()
    got[0] = 5
    assert _judged(rule, got, want, 1e-3, matched_ratio=0.9).ok
    got[7] = 5
    assert not _judged(rule, got, want, 1e-3, matched_ratio=0.9).ok
    assert _judged(rule, got, want, 1e-3, matched_ratio=0.8).ok


@pytest.mark.parametrize(
    ("rule", "tolerance", "parameters", "said"),
    [
        ("window", 1, {"size": 3}, "needs the parameter bounds"),
        ("argmin", 1, {}, "needs the parameter costs"),
        ("fa", 2, {}, "needs the parameter low_precision"),
        ("rel_l2", 1, {"matched_ratio": 0.5}, "has no parameter matched_ratio"),
        ("fib", 1, {"matched_ratio": 0}, "matched_ratio is a share"),
        ("identical", 1, {}, "its tolerance is 0"),
        ("rel_l2", -1, {}, "greater than or equal to 0"),
        ("exact", 0, {}, "identical"),
    ],
)
def test_a_check_that_makes_no_sense_is_refused_with_the_reason(
    rule: str, tolerance: float, parameters: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValidationError, match=said):
        Check.model_validate({"output": "y", "rule": rule, "tolerance": tolerance, "parameters": parameters})


def _task(*checks: dict[str, Any]) -> Task:
    workloads = [Workload(uuid="one", axes={"rows": 1, "columns": 1})]
    more = {"folder": "here", "content_hash": "none", "workloads": workloads, "checks": list(checks)}
    return Task.model_validate(SPEC | more)


@pytest.mark.parametrize(
    ("rule", "parameters", "said"),
    [
        ("fa", {"low_precision": "elsewhere"}, "needs a tensor 'elsewhere'"),
        ("argmin", {"costs": "elsewhere"}, "needs a tensor 'elsewhere'"),
        ("window", {"bounds": "low", "size": 2}, "needs a tensor 'low'"),
        ("window", {"bounds": "cuts", "size": 2}, r"needs an output \[tokens, heads, dim\]"),
        ("fa", {"low_precision": "low"}, r"needs low in the output's shape \[4\], not \[3\]"),
        ("argmin", {"costs": "low"}, "one axis of choices more"),
        ("identical", {"across": 1}, "an axis 0 to 0 in `across`"),
    ],
)
def test_a_rule_that_does_not_fit_the_reference_blames_the_task(
    rule: str, parameters: dict[str, Any], said: str
) -> None:
    task = _task({"output": "y", "rule": rule, "tolerance": 0, "parameters": parameters})
    case = _case({"y": WANT, "low": WANT[:3]}, {"cuts": BOUNDS})
    assert re.search(said, bad_reference(task, case)), bad_reference(task, case)


def test_every_check_has_its_finding_and_the_first_bad_one_decides() -> None:
    task = _task(
        {"output": "y", "rule": "allclose", "tolerance": 1.0},
        {"output": "y", "rule": "allclose", "tolerance": 0.25},
        {"output": "y", "rule": "identical", "tolerance": 0},
    )
    want = WANT[:2].reshape(1, 2)
    outputs = {"y": want + torch.tensor([0.0, 0.5])}
    found = findings(task, _case({"y": want}), outputs)
    assert [(f.ok, f.error) for f in found] == [(True, 0.5), (False, 0.5), (False, 1.0)]
    assert check_outputs(task, _case({"y": want}), outputs) == found[1]
    assert check_outputs(task, _case({"y": want}), {"y": want}) is None


def test_the_worst_error_of_each_check_is_kept_beside_the_baseline_s() -> None:
    def found(error: float, tolerance: float = 1.0) -> list[Finding]:
        return [Finding(error <= tolerance, "rel_l2", "y", error, tolerance)]

    worst = WorstErrors()
    assert worst.records() == []
    worst.add(found(0.25), "first")
    worst.add(found(0.5, 10.0), "wide")
    worst.add(found(0.125), "timed", found(0.0625))
    worst.add(found(0.0625), "timed later", found(0.25))
    expected = CheckError(
        output="y",
        rule="rel_l2",
        error=0.25,
        tolerance=1.0,
        round="first",
        beside_baseline=0.125,
        baseline_error=0.0625,
        beside_tolerance=1.0,
    )
    assert worst.records() == [expected]
    worst.add(found(INFINITY), "overflow")
    (record,) = worst.records()
    assert record.round == "overflow" and CheckError.model_validate_json(record.model_dump_json()) == record
