"""What one tunable alone does."""

from collections.abc import Callable

from supervisor.report.effects import effects
from supervisor.schema import Evaluation

Make = Callable[..., Evaluation]


def pairs(make: Make, ratio: float, count: int = 5) -> list[Evaluation]:
    """For each of `count` values of U one candidate with T=1 and one with T=2, faster by `ratio`."""
    points = [(t, u) for u in range(count) for t in (1, 2)]
    speed = {1: 1.0, 2: ratio}
    return [make(speed[t] * (1 + 0.1 * u), parameters={"T": t, "U": u}) for t, u in points]


def test_a_value_that_is_faster_in_every_pair_is_told_with_its_pairs(evaluation: Make) -> None:
    (effect,) = effects("a", pairs(evaluation, 1.5))
    assert str(effect).startswith("a with T=2 is 1.50x as fast as with 1: mean of 5 pairs")
    assert "(e2 over e1, e4 over e3, e6 over e5, ...)" in str(effect)


def test_the_better_value_may_be_the_smaller_one(evaluation: Make) -> None:
    (effect,) = effects("a", pairs(evaluation, 0.5))
    assert (effect.better, effect.worse, effect.ratio) == (1, 2, 2.0) and effect.pairs[0] == ("e1", "e2")


def test_one_pair_that_disagrees_few_pairs_or_a_small_ratio_are_no_effect(evaluation: Make) -> None:
    mixed = pairs(evaluation, 1.5)
    mixed[0] = evaluation(9.0, parameters={"T": 1, "U": 0})
    assert effects("a", mixed) == effects("a", pairs(evaluation, 1.5, 4)) == effects("a", pairs(evaluation, 1.02)) == []


def test_candidates_that_differ_in_two_tunables_or_failed_say_nothing_about_one(evaluation: Make) -> None:
    apart = [evaluation(1.0 + n, parameters={"T": n, "U": n}) for n in range(12)]
    failing = [evaluation(None, parameters={"T": 1, "U": n}) for n in range(12)]
    assert effects("a", [*apart, *failing]) == []
