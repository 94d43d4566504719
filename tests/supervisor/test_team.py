"""What a team must be, and what comes of its prediction."""

from collections.abc import Callable

import pytest
import yaml

from supervisor.schema import Evaluation, Prediction, TaskFacts, Team
from supervisor.team import Limits, charter, outcome, problems
from toolkits.core.schema import Json

Make = Callable[..., Evaluation]
LIMITS = Limits(evaluations=20, known_evaluations=["e1"])


def role(**fields: object) -> Json:
    return {"name": "tuner", "agent": "tuner", "mission": "search a", "variants": ["a"], "evaluations": 10} | fields


def team(*roles: Json, **fields: object) -> Team:
    known: Json = {
        "number": 2,
        "move": "narrow",
        "roles": roles or (role(),),
        "plan": "one tuner",
        "diagnosis": "it stalled",
        "evidence": ["e1"],
        "prediction": {"metric": "best_speedup", "threshold": 1.2, "within": 8},
    }
    return Team.model_validate(known | fields)


def test_a_sound_team_has_no_problems(facts: TaskFacts) -> None:
    assert problems(team(), facts, LIMITS) == []


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (team(role(), role()), "same name"),
        (team(evidence=["e9"]), "do not exist: e9"),
        (team(evidence=[]), "needs evidence"),
        (team(role(evaluations=21)), "ask for 21 evaluations, 20 are left"),
        (team(role(evaluations=4)), "due after 8 evaluations, the team gets 4"),
        (team(role(variants=["z"])), "no variant z"),
        (team(role(space={"a": {"T": [3]}})), "a T cannot be [3]"),
        (team(role(start={"a": {"X": 1}})), "a X cannot be [1]"),
    ],
)
def test_a_team_that_cannot_work_is_told_why(wrong: Team, said: str, facts: TaskFacts) -> None:
    assert any(said in problem for problem in problems(wrong, facts, LIMITS))


def test_a_prediction_holds_only_outside_the_noise(evaluation: Make) -> None:
    expected = Prediction(metric="best_speedup", threshold=1.2, within=3)
    assert outcome(expected, [evaluation(1.3)]).verdict == "held"
    assert outcome(expected, [evaluation(1.21), evaluation(1.0), evaluation(1.0)]).verdict == "undecided"
    assert outcome(expected, [evaluation(1.1), evaluation(1.0)]).verdict == "undecided"
    assert outcome(expected, [evaluation(1.1), evaluation(1.0), evaluation()]).verdict == "failed"


def test_what_comes_after_the_deadline_does_not_save_a_prediction(evaluation: Make) -> None:
    expected = Prediction(metric="best_speedup", threshold=1.2, within=2)
    assert outcome(expected, [evaluation(1.0), evaluation(1.0), evaluation(2.0)]).verdict == "failed"


def test_a_team_that_gave_up_early_is_judged_and_one_that_was_cut_short_is_not(evaluation: Make) -> None:
    expected = Prediction(metric="best_speedup", threshold=1.2, within=8)
    seen = [evaluation(1.0), evaluation(1.1)]
    assert outcome(expected, seen, gave_up=True).verdict == "failed"
    assert outcome(expected, seen).verdict == "undecided"


def test_an_outcome_cites_the_evaluation_it_quotes_first(evaluation: Make) -> None:
    expected = Prediction(metric="best_speedup", threshold=1.2, within=4)
    seen = [*[evaluation(1.15, half=0.1) for _ in range(3)], evaluation(1.19)]
    judged = outcome(expected, seen)
    assert judged.verdict == "undecided" and judged.observed.startswith("1.190x") and judged.evidence[0] == seen[-1].id


def test_a_prediction_about_failures_counts_failures(evaluation: Make) -> None:
    expected = Prediction(metric="failure_share", threshold=0.5, within=2)
    assert outcome(expected, [evaluation(1.0), evaluation()]).verdict == "held"
    assert outcome(expected, [evaluation(), evaluation()]).verdict == "failed"
    assert outcome(expected, [evaluation()]).verdict == "undecided"


def test_a_charter_says_the_same_to_programs_and_to_models() -> None:
    one = team(role(space={"a": {"T": [1, 2]}}, seed=7))
    _, front, prose = charter(one.roles[0], one, "toy", "first").split("---\n", 2)
    settings = yaml.safe_load(front)
    assert settings == {
        "task": "toy",
        "run": "first",
        "variants": ["a"],
        "space": {"a": {"T": [1, 2]}},
        "start": {},
        "seed": 7,
        "evaluations": 10,
    }
    assert "search a" in prose and "it stalled" in prose and "10 evaluations" in prose and "$" not in prose
