"""Wrong elements are described by where they lie."""

from typing import Any

import pytest
import torch

from toolkits.core.judge.patterns import describe

WANT = torch.arange(1.0, 1.0 + 6 * 16 * 8, dtype=torch.float64).reshape(6, 16, 8)
AXES = ["heads", "tokens", "dim"]


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ((slice(None), slice(13, None)), "the last 3 of 16 tokens (a tail)"),
        ((slice(None), slice(0, 4)), "the first 4 of 16 tokens"),
        ((slice(None), slice(4, 9)), "tokens 4 to 8 of 16 (a stripe)"),
        ((slice(None), slice(None, None, 8)), "every 8th tokens from 0"),
        ((2,), "only heads 2"),
        ((2, slice(12, None)), "only heads 2, the last 4 of 16 tokens (a tail)"),
        ((slice(None),), "spread over the whole tensor"),
        ((slice(None), [0, 1, 5]), "3 of 16 tokens, irregular"),
    ],
)
def test_the_pattern_names_axis_and_indices(place: Any, said: str) -> None:
    got = WANT.clone()
    got[place] += 100000.0
    assert describe(got, WANT, 1e-3, AXES).endswith(f"elements wrong: {said}")


def test_integers_and_non_finite_values_are_compared_exactly() -> None:
    ids = torch.tensor([3, 4, 5, 6])
    assert describe(torch.tensor([3, 4, 5, 7]), ids, 0.0, ["points"]) == "1 of 4 elements wrong: only points 3"
    want = torch.tensor([1.0, float("-inf"), 2.0], dtype=torch.float64)
    got = torch.tensor([1.0, float("-inf"), float("nan")])
    assert describe(got, want, 1e-3, ["rows"]) == "1 of 3 elements wrong: only rows 2"


def test_an_error_too_even_to_see_says_so() -> None:
    assert describe(WANT * (1 + 1e-6), WANT, 1e-3, AXES) == "no single element stands out"
