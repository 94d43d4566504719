"""When a claim may be called a result."""

from collections.abc import Callable, Sequence

import pytest

from supervisor.schema import Evaluation
from supervisor.verify import combined, judge
from toolkits.core.schema import Interval, Verdict

Make = Callable[..., Evaluation]


def ratio(value: float) -> Interval:
    return Interval(value=value, low=value * 0.99, high=value * 1.01)


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([1.30, 1.28, 1.31, 1.29, 1.30], "promoted"),
        ([1.30, 1.28, 1.31, 1.29], "open"),
        ([], "open"),
        ([1.30, None], "revoked"),
        ([1.01, 0.99, 1.02, 1.00, 0.98], "revoked"),
        ([3.0, 0.9, 1.0, 0.95, 1.0], "revoked"),
    ],
)
def test_a_claim_needs_five_good_sessions_that_agree(
    values: Sequence[float | None], verdict: str, evaluation: Make
) -> None:
    assert judge([evaluation(value) for value in values], 5) == verdict


def test_a_claim_that_the_judge_never_calls_faster_is_no_result_however_high_its_figure(evaluation: Make) -> None:
    unclear = [evaluation(18.0, verdict=Verdict.INCONCLUSIVE) for _ in range(3)]
    assert judge([*unclear, evaluation(18.0), evaluation(18.0)], 5) == "revoked"
    assert judge([*unclear[:2], *[evaluation(18.0) for _ in range(3)]], 5) == "promoted"


def test_a_part_of_the_workloads_carries_no_claim(evaluation: Make) -> None:
    whole = [evaluation(18.0) for _ in range(4)]
    assert not evaluation(18.0, partial=True).timed and not evaluation(18.0, partial=True).faster
    assert judge([*whole, evaluation(18.0, partial=True)], 5) == "revoked"


def test_sessions_that_disagree_widen_the_interval() -> None:
    close, apart = combined([ratio(v) for v in (1.2, 1.21, 1.19)]), combined([ratio(v) for v in (1.2, 1.4, 1.0)])
    assert close.low > apart.low and close.high < apart.high


def test_sessions_that_agree_to_the_last_digit_do_not_claim_certainty() -> None:
    same = combined([ratio(1.2)] * 5)
    assert same.low < same.value < same.high
