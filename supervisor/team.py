"""Teams: whether one makes sense, what it predicted and what came of it, and the charters of its roles."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from string import Template
from typing import cast

import yaml

from supervisor.schema import Evaluation, Outcome, Prediction, RoleSpec, Space, TaskFacts, Team
from toolkits.core.schema import Record, Tunable

CHARTER = Path(__file__).parent / "prompts" / "charter.md"


class Limits(Record):
    """What a team has to fit into."""

    evaluations: int
    known_evaluations: list[str] = []
    """Ids that a diagnosis may cite."""


def problems(team: Team, facts: TaskFacts, limits: Limits) -> list[str]:
    """Why the team cannot work, each in one sentence; empty when it can."""
    names = [role.name for role in team.roles]
    unknown = sorted(set(team.evidence) - set(limits.known_evaluations))
    asked = sum(role.evaluations for role in team.roles)
    checks = {
        "two roles have the same name": len(set(names)) < len(names),
        f"the evidence names evaluations that do not exist: {', '.join(unknown)}": bool(unknown),
        "a redesign needs evidence: name the evaluations it rests on": team.number > 1 and not team.evidence,
        f"the roles ask for {asked} evaluations, {limits.evaluations} are left": asked > limits.evaluations,
        f"the prediction is due after {team.prediction.within} evaluations, the team gets {asked}": (
            team.prediction.within > asked
        ),
    }
    return [text for text, wrong in checks.items() if wrong] + [
        problem for role in team.roles for problem in _role_problems(role, facts)
    ]


def _role_problems(role: RoleSpec, facts: TaskFacts) -> list[str]:
    strangers = [name for name in {*role.variants, *role.space, *role.start} if name not in facts.variants]
    if strangers:
        return [f"{role.name}: the task has no variant {', '.join(sorted(strangers))}"]
    starts: Space = {variant: {name: [value] for name, value in point.items()} for variant, point in role.start.items()}
    return [
        f"{role.name}: {variant} {name} cannot be {sorted(wrong)}"
        for space in (role.space, starts)
        for variant, tunables in space.items()
        for name, values in tunables.items()
        if (wrong := _undeclared(facts.variants[variant], name, values))
    ]


def _undeclared(tunables: dict[str, Tunable], name: str, values: Sequence[int]) -> set[int]:
    return set(values) - set(tunables[name].values if name in tunables else ())


# --- predictions ----------------------------------------------------------------------------------------------------


def outcome(prediction: Prediction, evaluations: Sequence[Evaluation], *, gave_up: bool = False) -> Outcome:
    """Judge a prediction on the team's evaluations, in order; what lies inside the noise stays undecided.

    A team that gave up before its time is judged on what it has, one that was cut short is not.
    """
    within = evaluations[: prediction.within]
    due = gave_up or len(within) >= prediction.within
    if prediction.metric == "failure_share":
        return _failure_outcome(prediction, within, due)
    return _speedup_outcome(prediction, within, due)


def _speedup_outcome(prediction: Prediction, within: Sequence[Evaluation], due: bool) -> Outcome:
    intervals = [(e.id, e.speedup) for e in within if e.timed and e.speedup]
    if not intervals:
        return Outcome(
            verdict="failed" if due else "undecided", observed=f"no correct kernel in {len(within)} evaluations"
        )
    id, top = max(intervals, key=lambda pair: pair[1].low)
    observed = f"{top.value:.3f}x [{top.low:.3f}, {top.high:.3f}] was the best of {len(within)} evaluations"
    if top.low >= prediction.threshold:
        return Outcome(verdict="held", observed=observed, evidence=[id])
    reachable = [i for i, interval in intervals if interval.high >= prediction.threshold]
    verdict = "failed" if due and not reachable else "undecided"
    return Outcome(verdict=verdict, observed=observed, evidence=list(dict.fromkeys([id, *reachable]))[:3])


def _failure_outcome(prediction: Prediction, within: Sequence[Evaluation], due: bool) -> Outcome:
    failed = [e.id for e in within if e.failed]
    observed = f"{len(failed)} of {len(within)} candidates failed"
    if not due:
        return Outcome(verdict="undecided", observed=observed, evidence=failed[:3])
    held = len(failed) <= prediction.threshold * len(within)
    return Outcome(verdict="held" if held else "failed", observed=observed, evidence=failed[:3])


# --- what is written down -------------------------------------------------------------------------------------------


def charter(role: RoleSpec, team: Team, task: str, run: str) -> str:
    """YAML front matter for programs, prose for models; both say the same."""
    settings = {"task": task, "run": run} | role.model_dump(
        include={"variants", "space", "start", "seed", "evaluations"}
    )
    front = "".join(f"{key}: {json.dumps(value)}\n" for key, value in settings.items())
    prose = Template(CHARTER.read_text(encoding="utf-8")).substitute(
        name=role.name,
        team=team.number,
        run=run,
        task=task,
        mission=role.mission,
        diagnosis=team.diagnosis,
        plan=team.plan,
        prediction=team.prediction,
        evaluations=role.evaluations,
    )
    return f"---\n{front}---\n{prose}"


def as_yaml(record: Record) -> str:
    dump = cast(Callable[..., str], yaml.safe_dump)  # pyright: ignore[reportUnknownMemberType]  # its stubs leave gaps
    return dump(record.model_dump(mode="json"), sort_keys=False, width=110, allow_unicode=True)
