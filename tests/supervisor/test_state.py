"""The run as its history tells it, wherever it was interrupted."""

from supervisor.state import best, candidates, promising, replay, searched
from tests.supervisor.conftest import History
from toolkits.core.schema import Json


def team(number: int) -> Json:
    return {
        "number": number,
        "move": "start",
        "roles": [{"name": "tuner", "agent": "tuner", "mission": "m", "variants": ["a"], "evaluations": 9}],
        "plan": "p",
        "diagnosis": "d",
        "prediction": {"metric": "best_speedup", "threshold": 1.0, "within": 5},
    }


ENDED: Json = {
    "team": 1,
    "reason": "plateau",
    "outcome": {"verdict": "undecided", "observed": "nothing", "evidence": []},
    "best": None,
    "gain": None,
    "spend": {"evaluations": 1, "seconds": 1.0, "usd": 0.0},
}


def started(history: History) -> History:
    """One team at work, one evaluation of the start and one of the team."""
    history.evaluation("e1", 0.2)
    history.add("generation_started", team(1))
    history.add("role_started", {"role": "r1", "name": "tuner", "team": 1}, role="r1")
    history.evaluation("e2", 1.3, role="r1", solution="fast")
    return history


def test_the_time_between_two_sessions_is_not_active(history: History) -> None:
    started(history)
    before = replay(history.rows).active_s
    history.add("session_started", {"device": "a CPU"}, after_s=3600.0)
    history.add("note", after_s=2.0)
    assert replay(history.rows).active_s == before + 2.0


def test_an_interrupted_generation_is_still_open(history: History) -> None:
    state = replay(started(history).rows)
    assert state.open_generation and state.open_generation.team.number == 1
    assert [(e.purpose, e.role, e.team) for e in state.evaluations] == [("start", "", 0), ("search", "tuner", 1)]


def test_a_plateau_written_down_survives_a_kill_before_the_team_was_ended(history: History) -> None:
    started(history).add("plateau", {"team": 1, "kind": "ideas", "reason": "no gain", "evidence": ["e2"]})
    state = replay(history.rows)
    assert state.open_generation and state.open_generation.plateau
    history.add("generation_ended", ENDED)
    assert replay(history.rows).open_generation is None


def test_an_evaluation_that_ends_late_belongs_to_the_team_that_asked_for_it(history: History) -> None:
    started(history).add("generation_ended", ENDED)
    history.add("generation_started", team(2))
    history.evaluation("e3", 1.1, role="r1")
    state = replay(history.rows)
    assert [e.id for e in state.of_team(1)] == ["e2", "e3"] and state.of_team(2) == []


def test_remeasures_count_for_the_claim_and_not_for_the_search(history: History) -> None:
    started(history).add("verification_started", {"solution": "fast", "claim": "e2"})
    history.evaluation("e3", 1.25, solution="fast")
    history.add("session_started", {"device": "a CPU"})
    history.evaluation("e4", 1.35, solution="fast")
    state = replay(history.rows)
    assert state.verifications[0].evaluations == ["e3", "e4"]
    top = best([e for e in state.evaluations if e.purpose != "verify"])
    assert top and top.id == "e2"


def test_a_revoked_claim_is_no_candidate_any_more(history: History) -> None:
    started(history).evaluation("e3", 1.2, role="r1", solution="next")
    assert [e.id for e in candidates(replay(history.rows))] == ["e2", "e3"]
    history.add("verification_started", {"solution": "fast", "claim": "e2"})
    history.add("revoked", {"solution": "fast", "claim": "e2", "evaluations": [], "speedup": None, "why": "slow"})
    assert [e.id for e in candidates(replay(history.rows))] == ["e3"]


def test_rows_of_unknown_kinds_are_passed_over(history: History) -> None:
    started(history).add("from_the_future", {"anything": 1})
    assert replay(history.rows).last_seq == len(history.rows)


def leaders(history: History) -> History:
    """Three candidates of one team: the luckiest first, one that its judge was not sure of."""
    started(history)
    history.evaluation("e3", 1.28, role="r1", solution="steady")
    history.evaluation("e4", 1.27, role="r1", solution="unclear", verdict="inconclusive")
    return history


def test_a_second_session_belongs_to_no_team_and_not_to_the_search(history: History) -> None:
    leaders(history).add("finalists", {"solutions": ["fast", "steady"], "evidence": ["e2", "e3"]})
    history.evaluation("e5", 1.1, solution="fast")
    state = replay(history.rows)
    assert state.evaluations[-1].purpose == "final"
    assert "e5" not in [e.id for e in searched(state)] and "e5" not in [e.id for e in state.of_team(1)]


def test_the_better_of_two_sessions_on_average_is_claimed_and_not_the_luckiest(history: History) -> None:
    leaders(history).add("finalists", {"solutions": ["fast", "steady"], "evidence": ["e2", "e3"]})
    assert [e.solution for e in candidates(replay(history.rows))] == ["fast", "steady"]
    history.evaluation("e5", 1.1, solution="fast")
    history.evaluation("e6", 1.27, solution="steady")
    assert [e.solution for e in candidates(replay(history.rows))] == ["steady", "fast"]


def test_a_finalist_that_fails_in_its_second_session_is_out(history: History) -> None:
    leaders(history).add("finalists", {"solutions": ["fast", "steady"], "evidence": ["e2", "e3"]})
    history.evaluation("e5", None, solution="fast")
    assert [e.solution for e in candidates(replay(history.rows))] == ["steady"]


def test_what_the_judge_never_called_faster_is_promising_and_no_candidate(history: History) -> None:
    state = replay(leaders(history).rows)
    assert "e4" in [e.id for e in promising(state)] and "e4" not in [e.id for e in candidates(state)]
    history.add("finalists", {"solutions": ["unclear"], "evidence": ["e4"]})
    history.evaluation("e5", 1.3, solution="unclear")
    assert candidates(replay(history.rows))[0].id == "e4"
