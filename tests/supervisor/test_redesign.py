"""The built-in rules on simulated runs."""

import math
import random
from collections.abc import Callable

from supervisor import parts, space
from supervisor.redesign import next_team
from supervisor.schema import Ended, Evaluation, Generation, Outcome, Plateau, PlateauKind, Profile, RunState, TaskFacts
from supervisor.situation import Situation
from supervisor.state import best
from supervisor.team import Limits, problems
from tests.supervisor.conftest import interval
from toolkits.core.schema import Tunable

Make = Callable[..., Evaluation]
Landscape = Callable[[str, dict[str, int]], float | None]


def hill(variant: str, point: dict[str, int]) -> float | None:
    """Best at T=4, U=8; variant a is faster."""
    away = abs(math.log2(point["T"] / 4)) + abs(math.log2(point["U"] / 8))
    return (1.5 if variant == "a" else 1.3) * 0.9**away


class Simulation:
    """A run in which every team measures eight points of its space and then stalls."""

    def __init__(self, facts: TaskFacts, make: Make, landscape: Landscape = hill, kind: PlateauKind = "ideas") -> None:
        self.facts = facts
        self.make = make
        self.landscape = landscape
        self.kind: PlateauKind = kind
        self.draw = random.Random(1)
        self.state = RunState(evaluations=[make(0.1, purpose="start", role="", team=0)])

    def situation(self, evaluations: int = 40) -> Situation:
        return Situation(self.facts, self.state, "tuner", evaluations, 8)

    def step(self, evaluations: int = 40) -> str | None:
        """The move of the next team, or None at the end."""
        team = next_team(self.situation(evaluations))
        if team is None:
            return None
        known = [e.id for e in self.state.evaluations]
        assert problems(team, self.facts, Limits(evaluations=evaluations, known_evaluations=known)) == []
        measured = [e for role in team.roles for e in self.measure(team.number, role.variants[0], role.space)]
        stalled = Plateau(kind=self.kind, reason="no gain", evidence=[e.id for e in measured][-3:])
        ended = Ended(reason="plateau", outcome=Outcome(verdict="undecided", observed=""))
        generation = Generation(team=team, seq=0, started_s=0.0, plateau=stalled, ended=ended)
        self.state = self.state.model_copy(
            update={
                "evaluations": [*self.state.evaluations, *measured],
                "generations": [*self.state.generations, generation],
            }
        )
        return team.move

    def measure(self, team: int, variant: str, narrowed: dict[str, dict[str, list[int]]]) -> list[Evaluation]:
        values = space.whole(self.facts.variants[variant]) | narrowed.get(variant, {})
        done = [e.parameters for e in self.state.evaluations if e.variant == variant]
        points = [{"T": t, "U": u} for t in values["T"] for u in values["U"]]
        fresh = [point for point in points if point not in done]
        chosen = self.draw.sample(fresh, min(8, len(fresh)))
        return [self.make(self.landscape(variant, p), variant=variant, parameters=p, team=team) for p in chosen]


def test_the_ladder_goes_from_cheap_to_dear_and_ends(facts: TaskFacts, evaluation: Make) -> None:
    run = Simulation(facts, evaluation)
    moves = list(iter(run.step, None))
    assert moves[:3] == ["start", "switch_variant", "narrow"]
    assert "add_tuner" in moves and len(moves) < 20
    top = best(run.state.evaluations)
    assert top and (top.variant, top.parameters) == ("a", {"T": 4, "U": 8})


def test_a_third_variant_gets_a_tuner_beside_the_best(facts: TaskFacts, evaluation: Make) -> None:
    three = facts.model_copy(update={"variants": facts.variants | {"c": facts.variants["a"]}})
    run = Simulation(three, evaluation)
    assert [run.step(), run.step(), run.step()] == ["start", "switch_variant", "add_tuner"]
    team = run.state.generations[-1].team
    assert [role.variants for role in team.roles] == [["a"], ["c"]]
    assert sum(role.evaluations for role in team.roles) == 40


def test_narrowing_keeps_the_best_and_its_neighbours(facts: TaskFacts, evaluation: Make) -> None:
    run = Simulation(facts, evaluation)
    for _ in range(3):
        run.step()
    team = run.state.generations[-1].team
    variant = team.roles[0].variants[0]
    before = [e for e in run.state.evaluations if e.team < 3 and e.variant == variant]
    top = best(before)
    assert top and team.move == "narrow" and team.focus == top.solution
    assert team.roles[0].start == {variant: top.parameters}
    for name, values in team.roles[0].space[variant].items():
        assert top.parameters[name] in values and len(values) <= 3


def test_values_that_only_ever_fail_are_left_out(facts: TaskFacts, evaluation: Make) -> None:
    def fails_when_large(variant: str, point: dict[str, int]) -> float | None:
        return None if point["T"] >= 8 else hill(variant, point)

    run = Simulation(facts, evaluation, fails_when_large, "correctness")
    run.draw = random.Random(3)
    run.step()
    assert any(e.failed for e in run.state.evaluations)
    assert run.step() == "avoid_failures"
    team = run.state.generations[-1].team
    measured = [e for e in run.state.evaluations if e.team == 1]
    failing = sorted({e.parameters["T"] for e in measured if e.failed})
    assert failing and not set(failing) & set(team.roles[0].space["a"]["T"])
    assert f"T={failing}" in team.diagnosis and team.prediction.metric == "failure_share"


def test_a_failing_lab_is_tried_once_more_and_then_left(facts: TaskFacts, evaluation: Make) -> None:
    run = Simulation(facts, evaluation, kind="infrastructure")
    moves = [run.step(), run.step(), run.step()]
    assert moves == ["start", "retry", "switch_variant"]


def test_a_diagnosis_cites_the_plateau_and_the_profile(facts: TaskFacts, evaluation: Make) -> None:
    run = Simulation(facts, evaluation)
    run.step()
    top = best(run.state.evaluations)
    assert top
    seen = Profile(seq=1, solution=top.solution, bottleneck="memory", verdict="memory: 70% of the cycles")
    run.state = run.state.model_copy(update={"profiles": [seen]})
    team = next_team(run.situation())
    assert team and "(ideas): no gain" in team.diagnosis and "memory: 70%" in team.diagnosis
    assert top.id in team.evidence and team.prediction.threshold > 1


def test_no_team_is_started_for_a_handful_of_evaluations(facts: TaskFacts, evaluation: Make) -> None:
    assert Simulation(facts, evaluation).step(parts.FEWEST - 1) is None


def test_a_task_with_nothing_to_tune_ends_after_its_start(facts: TaskFacts, evaluation: Make) -> None:
    plain = facts.model_copy(update={"variants": {"naive": dict[str, Tunable]()}})
    run = Simulation(plain, evaluation)
    run.measure = lambda team, variant, narrowed: [evaluation(0.1, variant="naive", team=team)]
    assert [run.step(), run.step()] == ["start", None]


def profiled(run: Simulation, *bottlenecks: str) -> None:
    """Profiles of the best so far, one after the other."""
    top = best(run.state.evaluations)
    assert top
    seen = [Profile(seq=n, solution=top.solution, bottleneck=b, verdict=f"{b}: 80%") for n, b in enumerate(bottlenecks)]
    run.state = run.state.model_copy(update={"profiles": [*run.state.profiles, *seen]})


def test_a_bottleneck_that_tunables_move_keeps_a_tuner_on_the_best_beside_the_new_variant(
    facts: TaskFacts, evaluation: Make
) -> None:
    run = Simulation(facts, evaluation)
    run.step()
    profiled(run, "compute")
    assert run.step() == "add_tuner"
    team = run.state.generations[-1].team
    assert [(role.name, role.variants) for role in team.roles] == [("tuner-narrow", ["a"]), ("tuner-new", ["b"])]
    assert "Tunables can move a compute bottleneck" in team.diagnosis


def test_a_bottleneck_that_the_structure_fixes_puts_all_on_the_new_variant(facts: TaskFacts, evaluation: Make) -> None:
    run = Simulation(facts, evaluation)
    run.step()
    profiled(run, "memory")
    assert run.step() == "switch_variant"
    assert "A memory bottleneck is set by the structure" in run.state.generations[-1].team.diagnosis


def test_the_profile_decides_whether_neighbours_or_the_second_variant_come_first(
    facts: TaskFacts, evaluation: Make
) -> None:
    moves: dict[str, str | None] = {}
    for bottleneck in ("compute", "memory", "unknown"):
        run = Simulation(facts, evaluation)
        run.step()
        run.step()
        profiled(run, bottleneck)
        moves[bottleneck] = run.step()
    assert moves == {"compute": "narrow", "memory": "add_tuner", "unknown": "narrow"}


def test_the_same_bottleneck_after_another_team_puts_variants_first_even_if_tunables_could_move_it(
    facts: TaskFacts, evaluation: Make
) -> None:
    run = Simulation(facts, evaluation, kind="profile")
    run.step()
    run.step()
    profiled(run, "compute", "compute")
    assert run.step() == "add_tuner"
    assert "Tuning did not move it" in run.state.generations[-1].team.diagnosis


def test_what_a_redesign_predicts_is_more_than_the_noise_of_the_best(facts: TaskFacts, evaluation: Make) -> None:
    run = Simulation(facts, evaluation)
    run.step()
    top = best(run.state.evaluations)
    assert top and top.speedup
    blurred = top.model_copy(update={"speedup": interval(top.speedup.value, 0.2), "seq": 0})
    run.state = run.state.model_copy(update={"evaluations": [blurred]})
    team = next_team(run.situation())
    assert team and team.prediction.threshold == round(top.speedup.value / 0.8, 4)
    assert "and 25.0% of noise" in team.prediction.basis
