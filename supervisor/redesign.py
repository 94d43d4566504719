"""The built-in rules that design the next team, cheap moves first. Pure: situation in, team or None out.

The ladder:  start -> (retry | avoid_failures, when that is what failed) -> a variant never tried -> narrow, and
add_tuner on the second best variant -> deepen -> nothing left.

The profile of the best decides twice. When its bottleneck is one that tunables move (compute, latency), a variant
never tried gets its tuner beside one on the neighbours of the best, and neighbours come before the second variant. When
it is one that the structure fixes (memory, branches), or two profiles in a row named the same, the variants come first.
"""

from collections.abc import Callable

from supervisor import space
from supervisor.parts import FEWEST, deepened, narrowed, over_best, role_of, speedup, team_of, whole_space
from supervisor.schema import Prediction, RoleSpec, Team
from supervisor.situation import Limit, Situation, focused, low, point, points, ratio
from supervisor.state import best

COMPARABLE = 0.5
"""A second variant is worth a tuner beside the best when it is at least this fraction as fast."""
MOST_DEEPENINGS = 2


Rule = Callable[[Situation], Team | None]


def next_team(situation: Situation) -> Team | None:
    """The first move of the ladder that applies; None: nothing is left, or not enough to try it."""
    if situation.evaluations < FEWEST:
        return None
    return next((team for rule in _ladder(situation) if (team := rule(situation))), None)


# --- the moves ------------------------------------------------------------------------------------------------------


def start(now: Situation) -> Team | None:
    if now.teams:
        return None
    variant = next(iter(now.facts.variants))
    return team_of(
        now,
        "start",
        [whole_space(now, "tuner", variant)],
        plan=f"one tuner over the whole space of {variant}",
        why=f"The run begins. {variant} is the task's first variant, {points(now, variant)}.",
        prediction=speedup(1.0, "the baseline", 2 * now.window),
    )


def retry(now: Situation) -> Team | None:
    """The lab failed, not the idea: once more the same."""
    plateau = now.plateau
    if plateau is None or plateau.kind != "infrastructure" or now.teams[-1].move == "retry":
        return None
    roles = [role.model_copy(update={"seed": now.number}) for role in now.teams[-1].roles]
    return team_of(
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
    role = role_of(now, "tuner", variant, values, f"search {variant} without {named}")
    why = f"These values occur only in failures: {named}."
    prediction = Prediction(metric="failure_share", threshold=0.4, within=now.window)
    return team_of(now, "avoid_failures", [role], plan=f"{variant} without them", why=why, prediction=prediction)


def switch_variant(now: Situation) -> Team | None:
    """All on the second variant, unless the profile says that the first is worth a closer look beside it."""
    if len(now.tried) != 1 or not now.fresh or (now.limit == "tunables" and _beside(now)):
        return None
    variant = now.fresh[0]
    return team_of(
        now,
        "switch_variant",
        [whole_space(now, "tuner", variant)],
        plan=f"one tuner over the whole space of {variant}",
        why=f"{_so(now, 'structure')}{variant} was never tried and is built differently, {points(now, variant)}.",
        prediction=over_best(now, whole=True),
    )


def add_fresh_tuner(now: Situation) -> Team | None:
    if not now.fresh:
        return None
    variant = now.fresh[0]
    beside = _beside(now)
    return team_of(
        now,
        "add_tuner",
        [*beside, whole_space(now, "tuner-new", variant)],
        plan=f"in parallel: {'narrow around the best, and ' if beside else ''}the whole space of {variant}",
        why=f"{_so(now, 'tunables') if beside else ''}{variant} was never tried, {points(now, variant)}.",
        prediction=over_best(now, whole=True),
        focus=now.ranking()[0].solution if beside else "",
    )


def _beside(now: Situation) -> list[RoleSpec]:
    """A tuner on the neighbours of the best, if there are enough of them."""
    return [role for top in now.ranking()[:1] if (role := narrowed(now, "tuner-narrow", top))]


def narrow(now: Situation) -> Team | None:
    top = next(iter(now.ranking()), None)
    role = narrowed(now, "tuner", top) if top else None
    if top is None or role is None or focused(now, top):
        return None
    return team_of(
        now,
        "narrow",
        [role],
        plan=f"one tuner on the neighbours of {point(top)}",
        why=f"{_so(now, 'tunables')}{top.variant} leads with {ratio(top)} (evaluation {top.id}), "
        "and its neighbours are not all measured.",
        prediction=over_best(now),
        focus=top.solution,
    )


def add_second_tuner(now: Situation) -> Team | None:
    ranking = now.ranking()
    if len(ranking) < 2 or low(ranking[1]) < COMPARABLE * low(ranking[0]) or focused(now, ranking[1]):
        return None
    second = narrowed(now, "tuner-second", ranking[1])
    if second is None:
        return None
    first = narrowed(now, "tuner-best", ranking[0]) or deepened(now, "tuner-best", ranking[0])
    return team_of(
        now,
        "add_tuner",
        [*([first] if first else []), second],
        plan=f"in parallel: {ranking[0].variant} goes on, a second tuner takes the neighbours of {point(ranking[1])}",
        why=f"{_so(now, 'structure')}{ranking[1].variant} is next with {ratio(ranking[1])} "
        f"(evaluation {ranking[1].id}), more than {COMPARABLE:.0%} of the best.",
        prediction=over_best(now, roles=2 if first else 1),
        focus=ranking[1].solution,
    )


def deepen(now: Situation) -> Team | None:
    for top in now.ranking():
        role = deepened(now, "tuner", top)
        done = sum(t.move == "deepen" and t.roles[0].variants == [top.variant] for t in now.teams)
        if role and done < MOST_DEEPENINGS and low(top) >= COMPARABLE * low(now.ranking()[0]):
            return team_of(
                now,
                "deepen",
                [role],
                plan=f"one tuner on the half of {top.variant} that was tried least",
                why=f"{points(now, top.variant)}; part of {top.variant} was hardly looked at.",
                prediction=over_best(now),
            )
    return None


def _ladder(now: Situation) -> tuple[Rule, ...]:
    first = (start, retry, avoid_failures, switch_variant, add_fresh_tuner)
    variants_first = now.limit == "structure"
    return (*first, *((add_second_tuner, narrow) if variants_first else (narrow, add_second_tuner)), deepen)


def _so(now: Situation, limit: Limit) -> str:
    """What the profile says for a move that acts on `limit`; nothing when it says something else."""
    if now.limit != limit or now.profile is None:
        return ""
    name = now.profile.bottleneck
    if limit == "tunables":
        return f"Tunables can move a {name} bottleneck, so the neighbours of the best are worth a look. "
    why = "Tuning did not move it" if now.same_bottleneck else f"A {name} bottleneck is set by the structure"
    return f"{why}, so another variant comes before the neighbours of the best. "
