"""Plateaus on synthetic histories, noise included."""

from collections.abc import Callable, Sequence

import pytest

from supervisor import plateau
from supervisor.plateau import Rule
from supervisor.schema import Evaluation
from toolkits.core.schema import Status

Curve = Callable[[Sequence[float], int, float], list[Evaluation]]
Make = Callable[..., Evaluation]
RULE = Rule(window=8)
SEEDS = range(200)


def first_alarm(evaluations: list[Evaluation], rule: Rule = RULE) -> int | None:
    """After how many evaluations a plateau is seen, if ever."""
    alarms = (n for n in range(1, len(evaluations) + 1) if plateau.detect(evaluations[:n], [], rule, 0.0))
    return next(alarms, None)


@pytest.mark.parametrize("sigma", [0.003, 0.01, 0.03])
def test_a_flat_noisy_curve_is_a_plateau_within_two_windows(curve: Curve, sigma: float) -> None:
    seen = [first_alarm(curve([1.2] * 24, seed, sigma)) for seed in SEEDS]
    assert sum(n is not None and n <= 2 * RULE.window + 1 for n in seen) >= 0.9 * len(SEEDS)


@pytest.mark.parametrize("sigma", [0.003, 0.01, 0.03])
def test_a_climbing_noisy_curve_hardly_ever_raises_a_false_alarm(curve: Curve, sigma: float) -> None:
    climbing = [1.02**n for n in range(24)]
    alarms = sum(first_alarm(curve(climbing, seed, sigma)) is not None for seed in SEEDS)
    assert alarms <= 0.05 * len(SEEDS)


def test_a_rare_jump_outside_the_noise_restarts_the_count(curve: Curve) -> None:
    steps = [1.0] * 6 + [1.3] * 6 + [1.6] * 6
    assert first_alarm(curve(steps, 1, 0.01)) is None


def test_small_steps_inside_the_noise_add_up_to_a_gain(evaluation: Make) -> None:
    steps = [evaluation(1 + 0.01 * n, half=0.02) for n in range(8)]
    gain = plateau.last_gain(steps)
    assert gain is not None and gain >= 3


def test_a_gain_smaller_than_both_intervals_together_is_none(evaluation: Make) -> None:
    old, near, far = (evaluation(value, half=0.02).speedup for value in (1.00, 1.02, 1.05))
    assert old and near and far
    assert not plateau.verified_gain(near, old)
    assert plateau.verified_gain(far, old)


def test_five_failures_in_a_row_are_stuck_on_correctness(evaluation: Make) -> None:
    failing = [evaluation(1.1), *[evaluation() for _ in range(5)]]
    found = plateau.detect(failing, [], RULE, 0.0)
    assert found and found.kind == "correctness" and found.evidence == [e.id for e in failing[1:]]
    assert plateau.detect([*failing[:5], evaluation(1.1), *failing[5:]], [], RULE, 0.0) is None


def test_a_failing_lab_is_stuck_on_infrastructure_and_not_the_candidates_fault(evaluation: Make) -> None:
    broken = [evaluation(status=Status.HARNESS_ERROR, cause="judge_died") for _ in range(5)]
    found = plateau.detect(broken, [], RULE, 0.0)
    assert found and found.kind == "infrastructure"


def test_the_same_bottleneck_twice_is_stuck_on_the_profile(evaluation: Make) -> None:
    flat = [evaluation(1.2) for _ in range(12)]
    kinds = [plateau.detect(flat, names, RULE, 0.0) for names in (["memory", "memory"], ["compute", "memory"])]
    assert [found.kind for found in kinds if found] == ["profile", "ideas"]


def test_figures_too_noisy_to_compare_are_stuck_on_measurement(evaluation: Make) -> None:
    found = plateau.detect([evaluation(1.05, 0.2) for _ in range(12)], [], RULE, 0.0)
    assert found and found.kind == "measurement"


def test_candidates_that_differ_clearly_are_not_noise_though_their_intervals_are_wide(evaluation: Make) -> None:
    worse = [evaluation(value, 0.2) for value in (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.15)]
    found = plateau.detect([evaluation(1.7, 0.1), *worse], [], RULE, 0.0)
    assert found and found.kind == "ideas"


def test_near_duplicates_are_counted_as_missing_ideas(evaluation: Make) -> None:
    alike = [evaluation(1.2, variant="a", parameters={"T": 4, "U": n}) for n in range(10)]
    found = plateau.detect(alike, [], RULE, 0.0)
    assert found and found.kind == "ideas" and "at most one parameter" in found.reason


def test_slow_evaluations_stall_by_their_share_of_the_time(evaluation: Make) -> None:
    slow = [evaluation(1.2, at_s=60.0 * n) for n in range(4)]
    assert plateau.detect(slow, [], RULE, 200.0) is None
    assert plateau.detect(slow, [], Rule(window=8, stall_s=75.0), 200.0) is not None


def test_the_window_follows_the_budget_and_the_team() -> None:
    assert [plateau.rule(n, 5.0).window for n in (20, 50, 60, 1000)] == [5, 7, 8, 8]
    assert plateau.rule(60, 5.0, roles=2).window == 12
