"""One generation after the next until the budget or the ideas are used up, then the winner's re-measures.

Every decision is a row of the history before it is acted upon, and every step first asks the state what is already
done. So the same function that starts a run also resumes it, wherever it was killed.
"""

from collections.abc import Sequence

from mcp_server.schema import RoleAnswer
from supervisor import budget, files, parts, plateau, redesign, space, team, winner
from supervisor.run import HARNESS_TRIES, Run
from supervisor.schema import Ended, EndReason, Evaluation, Generation, Outcome, Plateau, RunConfig, Spend, Team
from supervisor.state import best, searched
from toolkits.core.errors import HarnessError, LabError
from toolkits.core.schema import Json, Status

POLL_S = 1.0
SMALLEST_USD = 0.01
"""To the lab a cap of zero is none."""
FAILED = ("crashed", "api_error", "auth", "quota", "refused", "stalled", "tools_missing")
"""Ends of a role that say something about the agent or the lab, and nothing about the kernel."""
PROFILE_SHARE = 0.1
"""Of the time budget: one profile takes no more."""


async def evolve(run: Run) -> None:
    """The whole story; returns when the run is finished."""
    await _measure_start(run)
    while not run.state.stopped_because:
        generation = run.state.open_generation or await _next_generation(run)
        if generation:
            await _work(run, generation)
    await winner.verify_claims(run)


# --- the start ------------------------------------------------------------------------------------------------------


async def _measure_start(run: Run) -> None:
    """The start solution against the baseline: the first evaluation of every run."""
    for _ in range(HARNESS_TRIES):
        if any(e.status != Status.HARNESS_ERROR for e in run.state.evaluations):
            return
        run.doing(f"measuring {run.facts.start} (the start) and {run.facts.baseline} (the baseline)")
        await run.lab.evaluate(run.facts.name, run.facts.start_path)
        await run.sync()
    last = run.state.evaluations[-1]
    if all(e.status == Status.HARNESS_ERROR for e in run.state.evaluations):
        raise HarnessError(f"the lab fails on the start solution ({last.cause}): run `kernel-lab doctor`")


# --- a generation ---------------------------------------------------------------------------------------------------


async def _next_generation(run: Run) -> Generation | None:
    """Design the next team and write it down; None when the search is over, which is written down too."""
    if spent := budget.spent_out(run.left):
        await run.decide("search_ended", {"reason": f"the budget of {spent} is used, less the reserve"})
        return None
    await _profile_best(run)
    new = redesign.next_team(
        redesign.Situation(run.facts, run.state, run.config.agent, run.left.evaluations, _rule(run.config, None).window)
    )
    if new is None:
        await run.decide("search_ended", {"reason": _why_no_team(run)})
        return None
    limits = team.Limits(evaluations=run.left.evaluations, known_evaluations=[e.id for e in run.state.evaluations])
    if wrong := team.problems(new, run.facts, limits):
        raise LabError(f"team {new.number} makes no sense: {'; '.join(wrong)}")
    await run.decide("generation_started", new)
    return run.state.generations[-1]


def _why_no_team(run: Run) -> str:
    if run.left.evaluations < parts.FEWEST:
        return f"{run.left.evaluations} left of the evaluations beside the reserve, too few for a team"
    values = {variant: space.whole(tunables) for variant, tunables in run.facts.variants.items()}
    total = sum(map(space.size, values.values()))
    seen = {variant: [e for e in searched(run.state) if e.variant == variant] for variant in values}
    rest = sum(space.untried(values[variant], seen[variant]) for variant in values)
    return f"no rule has a move left, and {rest or 'none'} of the {total} points of the variants remained unmeasured"


async def _profile_best(run: Run) -> None:
    """Ask the profiler what limits the best candidate, once each; a profile that fails is advice that is missing."""
    top = run.best
    if not run.state.generations or top is None or any(p.solution == top.solution for p in run.state.profiles):
        return
    run.doing(f"profiling the best candidate ({top.variant or run.facts.start})")
    patience_s = PROFILE_SHARE * run.config.minutes * 60
    answer = await run.lab.profile(run.facts.name, run.stored(top.solution), patience_s)
    if answer.state == "done":
        await run.sync()
    else:
        why = answer.error or f"it took longer than {patience_s:.0f} s"
        await run.decide("profile", {"target": top.solution, "verdict": "", "bottleneck": "unknown", "why": why})


async def _work(run: Run, generation: Generation) -> None:
    """Let the team work until something ends it; a generation that was interrupted goes on where it stood."""
    if generation.plateau is None:
        await _spawn(run, generation.team)
        reason, found = await _watch(run, generation.team)
        if found:
            await run.decide("plateau", {"team": generation.team.number} | found.model_dump(mode="json"))
    else:
        reason = "plateau"
    await stop_roles(run)
    await run.sync()
    await run.decide("generation_ended", {"team": generation.team.number} | _ended(run, generation, reason))
    run.roles = []


async def _spawn(run: Run, new: Team) -> None:
    files.write(run.folder / "teams" / f"{new.number:03d}" / "team.yaml", team.as_yaml(new))
    run.roles = []
    for role in new.roles:
        left = role.evaluations - sum(e.role == role.name for e in run.state.of_team(new.number))
        if left > 0:
            charter = team.charter(role, new, run.facts.name, run.name)
            usd = _usd_cap(run, len(new.roles))
            run.roles.append(await run.lab.spawn_role(role.name, charter, role.agent, new.number, left, usd))
    run.doing(f"team {new.number} works: {new.plan}")


def _usd_cap(run: Run, roles: int) -> float:
    """A role's part of what is left, for the lab to enforce; without a budget the first cent ends the run."""
    return max(SMALLEST_USD, round(run.left.usd / roles, 2)) if run.config.usd else 0.0


async def _watch(run: Run, team: Team) -> tuple[EndReason, Plateau | None]:
    """Poll history and roles until the generation has a reason to end."""
    while True:
        running = [role for role in run.roles if role.state == "running"]
        # Waiting for a role is the pause of this loop.
        for position, role in enumerate(running):
            answer = await run.lab.wait_role(role.role, POLL_S if position == 0 else 0)
            run.heard(answer)
        await run.sync()
        if ended := _reason_to_end(run, team):
            return ended


def _reason_to_end(run: Run, team: Team) -> tuple[EndReason, Plateau | None] | None:
    if spent := budget.spent_out(run.left):
        return ("time" if spent == "time" else "budget"), None
    generation = run.state.generations[-1]
    seen = run.state.of_team(team.number)
    bottlenecks = [profile.bottleneck for profile in run.state.profiles]
    age_s = run.elapsed_s - generation.started_s
    found = plateau.detect(_since(seen, generation.started_s), bottlenecks, _rule(run.config, team), age_s)
    if found:
        return "plateau", found
    if all(role.state != "running" for role in run.roles):
        return "done", _all_done(run.roles, seen)
    return None


def _since(evaluations: Sequence[Evaluation], started_s: float) -> list[Evaluation]:
    """With times that count from the start of the generation."""
    return [e.model_copy(update={"at_s": e.at_s - started_s}) for e in evaluations]


def _rule(config: RunConfig, team: Team | None) -> plateau.Rule:
    return plateau.rule(config.evaluations, config.minutes, len(team.roles) if team else 1)


def _all_done(roles: Sequence[RoleAnswer], seen: Sequence[Evaluation]) -> Plateau:
    """Roles that end by themselves have no more ideas; roles that crash say something about the lab."""
    evidence = [e.id for e in seen][-8:]
    failed = [f"{role.name} ended {role.state}: {role.note}" for role in roles if role.state in FAILED]
    if failed:
        return Plateau(kind="infrastructure", reason=f"roles failed ({'; '.join(failed)})", evidence=evidence)
    notes = "; ".join(f"{role.name}: {role.note or role.state}" for role in roles)
    return Plateau(kind="ideas", reason=f"the team has nothing left to try ({notes})", evidence=evidence)


async def stop_roles(run: Run) -> None:
    """End every role that still runs; what each has used is kept."""
    for role in run.roles:
        if role.state == "running":
            run.heard(await run.lab.stop_role(role.role))


def _ended(run: Run, generation: Generation, reason: EndReason) -> Json:
    number = generation.team.number
    mine = run.state.of_team(number)
    before = best([e for e in searched(run.state) if e.seq < generation.seq])
    after = run.best
    gain = after.speedup.value / before.speedup.value if after and before and after.speedup and before.speedup else None
    ended = Ended(
        reason=reason,
        outcome=_outcome(generation.team, mine, reason),
        best=after.speedup if after else None,
        gain=gain,
        spend=Spend(
            evaluations=len(mine),
            seconds=round(run.elapsed_s - generation.started_s, 1),
            usd=sum(role.usd for role in run.roles),
        ),
    )
    return ended.model_dump(mode="json")


def _outcome(ended: Team, mine: Sequence[Evaluation], reason: EndReason) -> Outcome:
    if not mine:
        return Outcome(verdict="undecided", observed=f"team {ended.number} measured nothing")
    return team.outcome(ended.prediction, mine, gave_up=reason in ("plateau", "done"))
