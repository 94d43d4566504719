"""The built-in rules that design the next team, cheap moves first. Pure: situation in, team or None out.

The ladder:  start -> (retry | avoid_failures, when that is what failed) -> switch_variant -> add_tuner on a variant
never tried -> narrow -> add_tuner on the second best variant -> deepen -> nothing left.
"""

from collections.abc import Callable, Sequence

from supervisor import budget, space
from supervisor.schema import Evaluation, Move, Prediction, RoleSpec, Team
from supervisor.situation import Situation, evidence, focused, low, point, points, ratio, what_happened
from supervisor.state import best, searched

GAIN = 1.02
"""A redesign predicts at least this much over the best so far: less would not be worth a team."""
FEWEST = 3
"""Evaluations below which no team is started."""
COMPARABLE = 0.5
"""A second variant is worth a tuner beside the best when it is at least this fraction as fast."""
MOST_DEEPENINGS = 2


Rule = Callable[[Situation], Team | None]


def next_team(situation: Situation) -> Team | None:
    """The first move of the ladder that applies; None: nothing is left, or not enough to try it."""
    if situation.evaluations < FEWEST:
        return None
    return next((team for rule in LADDER if (team := rule(situation))), None)


# --- the moves ------------------------------------------------------------------------------------------------------


def start(now: Situation) -> Team | None:
    if now.teams:
        return None
    variant = next(iter(now.facts.variants))
    return _team(
        now,
        "start",
        [_whole(now, "tuner", variant)],
        plan=f"one tuner over the whole space of {variant}",
        why=f"The run begins. {variant} is the task's first variant, {points(now, variant)}.",
        prediction=_speedup(1.0, 2 * now.window),
    )


def retry(now: Situation) -> Team | None:
    """The lab failed, not the idea: once more the same."""
    plateau = now.plateau
    if plateau is None or plateau.kind != "infrastructure" or now.teams[-1].move == "retry":
        return None
    roles = [role.model_copy(update={"seed": now.number}) for role in now.teams[-1].roles]
    return _team(
        now,
        "retry",
        roles,
        plan="the same roles once more",
        why="It says nothing about the kernels.",
        prediction=Prediction(metric="failure_share", threshold=0.5, within=now.window),
        focus=now.teams[-1].focus,
    )


def avoid_failures(now: Situation) -> Team | None:
    """Stuck on correctness: leave out the values that have only ever failed."""
    plateau = now.plateau
    if plateau is None or plateau.kind != "correctness":
        return None
    variant = now.teams[-1].roles[0].variants[0]
    seen = now.seen(variant)
    bad = space.only_failed(seen)
    values = space.without(now.tunables(variant), bad)
    if best(seen) is None or not bad or space.untried(values, seen) < FEWEST:
        return None
    named = ", ".join(f"{name}={sorted(found)}" for name, found in bad.items())
    role = _role(now, "tuner", variant, values, f"search {variant} without {named}")
    why = f"These values occur only in failures: {named}."
    prediction = Prediction(metric="failure_share", threshold=0.4, within=now.window)
    return _team(now, "avoid_failures", [role], plan=f"{variant} without them", why=why, prediction=prediction)


def switch_variant(now: Situation) -> Team | None:
    if len(now.tried) != 1 or not now.fresh:
        return None
    variant = now.fresh[0]
    return _team(
        now,
        "switch_variant",
        [_whole(now, "tuner", variant)],
        plan=f"one tuner over the whole space of {variant}",
        why=f"{variant} was never tried and is built differently, {points(now, variant)}.",
        prediction=_over_best(now),
    )


def add_fresh_tuner(now: Situation) -> Team | None:
    if not now.fresh:
        return None
    variant = now.fresh[0]
    beside = [role for top in now.ranking()[:1] if (role := _narrowed(now, "tuner-narrow", top))]
    return _team(
        now,
        "add_tuner",
        [*beside, _whole(now, "tuner-new", variant)],
        plan=f"in parallel: {'narrow around the best, and ' if beside else ''}the whole space of {variant}",
        why=f"{variant} was never tried, {points(now, variant)}; the best so far deserves a closer look beside it.",
        prediction=_over_best(now),
        focus=now.ranking()[0].solution if beside else "",
    )


def narrow(now: Situation) -> Team | None:
    top = next(iter(now.ranking()), None)
    role = _narrowed(now, "tuner", top) if top else None
    if top is None or role is None or focused(now, top):
        return None
    return _team(
        now,
        "narrow",
        [role],
        plan=f"one tuner on the neighbours of {point(top)}",
        why=f"{top.variant} leads with {ratio(top)} (evaluation {top.id}); its neighbours are not all measured.",
        prediction=_over_best(now),
        focus=top.solution,
    )


def add_second_tuner(now: Situation) -> Team | None:
    ranking = now.ranking()
    if len(ranking) < 2 or low(ranking[1]) < COMPARABLE * low(ranking[0]) or focused(now, ranking[1]):
        return None
    second = _narrowed(now, "tuner-second", ranking[1])
    if second is None:
        return None
    first = _narrowed(now, "tuner-best", ranking[0]) or _deepened(now, "tuner-best", ranking[0])
    return _team(
        now,
        "add_tuner",
        [*([first] if first else []), second],
        plan=f"in parallel: {ranking[0].variant} goes on, a second tuner takes the neighbours of {point(ranking[1])}",
        why=f"{ranking[1].variant} is close behind with {ratio(ranking[1])} (evaluation {ranking[1].id}).",
        prediction=_over_best(now),
        focus=ranking[1].solution,
    )


def deepen(now: Situation) -> Team | None:
    for top in now.ranking():
        role = _deepened(now, "tuner", top)
        done = sum(t.move == "deepen" and t.roles[0].variants == [top.variant] for t in now.teams)
        if role and done < MOST_DEEPENINGS and low(top) >= COMPARABLE * low(now.ranking()[0]):
            return _team(
                now,
                "deepen",
                [role],
                plan=f"one tuner on the half of {top.variant} that was tried least",
                why=f"{points(now, top.variant)}; part of {top.variant} was hardly looked at.",
                prediction=_over_best(now),
            )
    return None


LADDER: tuple[Rule, ...] = (
    start,
    retry,
    avoid_failures,
    switch_variant,
    add_fresh_tuner,
    narrow,
    add_second_tuner,
    deepen,
)


# --- roles ----------------------------------------------------------------------------------------------------------


def _role(
    now: Situation, name: str, variant: str, values: space.Values, mission: str, top: Evaluation | None = None
) -> RoleSpec:
    return RoleSpec(
        name=name,
        agent=now.agent,
        mission=mission,
        variants=[variant],
        space={variant: values} if values else {},
        start={variant: top.parameters} if top and top.parameters else {},
        seed=now.number,
        evaluations=1,  # the real share is dealt out when the team is complete
    )


def _whole(now: Situation, name: str, variant: str) -> RoleSpec:
    return _role(now, name, variant, {}, f"search the whole space of {variant}")


def _narrowed(now: Situation, name: str, top: Evaluation) -> RoleSpec | None:
    values = space.around(now.tunables(top.variant), top.parameters)
    if space.untried(values, now.seen(top.variant)) < FEWEST:
        return None
    return _role(now, name, top.variant, values, f"search {top.variant} next to {point(top)}", top)


def _deepened(now: Situation, name: str, top: Evaluation) -> RoleSpec | None:
    seen = now.seen(top.variant)
    values = space.rare(now.tunables(top.variant), seen, top.parameters)
    if space.untried(values, seen) < FEWEST:
        return None
    return _role(now, name, top.variant, values, f"search the half of {top.variant} that was tried least", top)


def _team(
    now: Situation,
    move: Move,
    roles: Sequence[RoleSpec],
    *,
    plan: str,
    why: str,
    prediction: Prediction,
    focus: str = "",
) -> Team:
    dealt = budget.shares(now.evaluations, len(roles))
    within = min(prediction.within, now.evaluations)
    return Team(
        number=now.number,
        move=move,
        roles=[role.model_copy(update={"evaluations": share}) for role, share in zip(roles, dealt, strict=True)],
        plan=plan,
        diagnosis=f"{what_happened(now)} {why}".strip(),
        evidence=evidence(now),
        prediction=prediction.model_copy(update={"within": within}),
        focus=focus,
    )


def _over_best(now: Situation) -> Prediction:
    top = best(searched(now.state))
    return _speedup(round((top.speedup.value if top and top.speedup else 1.0) * GAIN, 4), now.window)


def _speedup(threshold: float, within: int) -> Prediction:
    return Prediction(metric="best_speedup", threshold=threshold, within=within)
