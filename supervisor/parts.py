"""What the moves of a redesign are made of: roles with their spaces, the team around them, and its prediction. Pure."""

from collections.abc import Sequence

from supervisor import budget, space
from supervisor.schema import Evaluation, Move, Prediction, RoleSpec, Team
from supervisor.situation import Situation, evidence, point, what_happened
from supervisor.state import best, searched

LEAST_GAIN = 1.02
"""Less than this over the best so far would not be worth a team, however small the noise."""
FEWEST = 3
"""Evaluations below which no team is started, and points below which no role is."""


def role_of(
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


def whole_space(now: Situation, name: str, variant: str) -> RoleSpec:
    return role_of(now, name, variant, {}, f"search the whole space of {variant}")


def narrowed(now: Situation, name: str, top: Evaluation) -> RoleSpec | None:
    values = space.around(now.tunables(top.variant), top.parameters)
    if space.untried(values, now.seen(top.variant)) < FEWEST:
        return None
    return role_of(now, name, top.variant, values, f"search the neighbours of {point(top)}", top)


def deepened(now: Situation, name: str, top: Evaluation) -> RoleSpec | None:
    seen = now.seen(top.variant)
    values = space.rare(now.tunables(top.variant), seen, top.parameters)
    if space.untried(values, seen) < FEWEST:
        return None
    return role_of(now, name, top.variant, values, f"search the half of {top.variant} that was tried least", top)


def team_of(
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


def over_best(now: Situation, *, whole: bool = False, roles: int = 1) -> Prediction:
    """More than the best so far by what its own interval leaves open; a whole space takes longer to show it."""
    top = best(searched(now.state))
    if top is None or top.speedup is None:
        return speedup(1.0, "the baseline", 2 * now.window)
    noise = max(LEAST_GAIN, top.speedup.value / top.speedup.low)
    basis = f"the best so far, {top.speedup.value:.3f}x, and {noise - 1:.1%} of noise"
    return speedup(round(top.speedup.value * noise, 4), basis, now.window * (2 if whole else roles))


def speedup(threshold: float, basis: str, within: int) -> Prediction:
    return Prediction(metric="best_speedup", threshold=threshold, basis=basis, within=within)
