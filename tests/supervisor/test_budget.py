"""What may be spent, and what is kept back."""

from collections.abc import Callable

import pytest
from pydantic import ValidationError

from supervisor import budget
from supervisor.schema import Evaluation, RunConfig, RunState, Verification

Make = Callable[..., Evaluation]


def test_the_reserve_for_verification_is_taken_out_first(evaluation: Make) -> None:
    config = RunConfig(task="toy", evaluations=60, minutes=5.0)
    state = RunState(evaluations=[evaluation(0.1, seconds=16.0), evaluation(1.0, seconds=4.0)])
    left = budget.remaining(config, state, elapsed_s=60.0, usd=0.0)
    assert left.evaluations == 60 - 2 - 5 - 3
    assert left.seconds == 300 - 60 - ((5 + 3) * 4.0 * 1.5 + 5.0)


def test_a_run_with_few_evaluations_keeps_none_for_second_sessions() -> None:
    small, large = RunConfig(task="toy", evaluations=19), RunConfig(task="toy", evaluations=20)
    left = [budget.remaining(config, RunState(), 0.0, 0.0).evaluations for config in (small, large)]
    assert left == [19 - 5, 20 - 5 - 3]


def test_a_second_session_never_takes_what_the_re_measures_need(evaluation: Make) -> None:
    config = RunConfig(task="toy", evaluations=20, minutes=1.0)
    state = RunState(evaluations=[evaluation(1.2) for _ in range(14)])
    assert budget.may_compare(config, state, elapsed_s=60 - 6 * 4.0)
    assert not budget.may_compare(config, state, elapsed_s=61 - 6 * 4.0)
    full = state.model_copy(update={"evaluations": [evaluation(1.2) for _ in range(15)]})
    assert not budget.may_compare(config, full, elapsed_s=0.0)


def test_slow_evaluations_cannot_reserve_the_whole_budget(evaluation: Make) -> None:
    config = RunConfig(task="toy", evaluations=60, minutes=1.0)
    state = RunState(evaluations=[evaluation(1.0, seconds=100.0)])
    assert budget.reserve_s(config, state) == 0.4 * 60


@pytest.mark.parametrize(
    ("evaluations", "seconds", "usd", "spent"),
    [(3, 10.0, 0.0, ""), (0, 10.0, 0.0, "evaluations"), (3, 0.0, 0.0, "time"), (3, 10.0, -0.01, "usd")],
)
def test_each_limit_ends_the_search_by_itself(evaluations: int, seconds: float, usd: float, spent: str) -> None:
    assert budget.spent_out(budget.Remaining(evaluations=evaluations, seconds=seconds, usd=usd)) == spent


def test_shares_add_up_to_the_whole() -> None:
    assert budget.shares(11, 2) == [6, 5]
    assert budget.shares(2, 3) == [1, 1, 0]


def test_the_first_claim_is_always_verified_and_a_further_one_only_when_it_fits(evaluation: Make) -> None:
    config = RunConfig(task="toy", evaluations=20, minutes=1.0)
    state = RunState(evaluations=[evaluation(1.2) for _ in range(10)])
    revoked = state.model_copy(update={"verifications": [Verification(solution="s1", claim="e1", verdict="revoked")]})
    assert budget.may_verify(config, state, elapsed_s=59.0)
    assert not budget.may_verify(config, revoked, elapsed_s=59.0)
    assert budget.may_verify(config, revoked, elapsed_s=30.0)
    full = state.model_copy(update={"evaluations": [evaluation(1.2) for _ in range(16)]})
    assert not budget.may_verify(config, full, elapsed_s=0.0)


@pytest.mark.parametrize("field", ["evaluations", "minutes"])
def test_a_budget_that_cannot_hold_a_run_is_refused(field: str) -> None:
    with pytest.raises(ValidationError, match=field):
        RunConfig.model_validate({"task": "toy", field: 0})
