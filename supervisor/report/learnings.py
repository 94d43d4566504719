"""LEARNINGS.md: what holds, what is refuted, what is open; each claim with its evaluations and the hardware."""

from collections.abc import Sequence

from supervisor import space
from supervisor.report import words
from supervisor.report.effects import effects
from supervisor.report.summary import Summary
from supervisor.schema import Evaluation, RunState, TaskFacts
from supervisor.state import best, searched
from toolkits.core.schema import Verdict

MOST = 12
"""Claims of one kind: a page that people read."""
MOST_FAILURES = 5


def render(summary: Summary, state: RunState, facts: TaskFacts) -> str:
    parts = [
        f"# Learnings of run {summary.run}: {summary.task}",
        f"Measured on {summary.device}. "
        f"Ratios are baseline (`{summary.baseline}`) over candidate, with 99 % intervals; "
        "above 1.0 is faster. Ids are evaluations: `kernel-lab get-result ID` shows the record.",
        _section("What holds", holds(summary, state, facts)),
        _section("What one tunable alone does", tunables(state, facts)),
        _section("What is refuted", refuted(state, facts)),
        _section("What is open", still_open(state, facts)),
    ]
    return "\n\n".join(parts) + "\n"


def holds(summary: Summary, state: RunState, facts: TaskFacts) -> list[str]:
    claims: list[str] = []
    if summary.winner:
        w = summary.winner
        what = " ".join(f"{name}={value}" for name, value in w.parameters.items())
        claims.append(
            f"{w.variant} {what}".strip() + f" runs at {words.ratio(w.speedup)}, re-measured five times from its "
            f"stored sources (worst workload {w.worst_workload}: {w.worst:.3f}x){_cited(w.evaluations)}."
        )
    for variant in facts.variants:
        top = best(_of(state, variant))
        if top and not (summary.winner and summary.winner.solution == top.solution):
            claims.append(
                f"The best of {variant} in the search was {words.point(top)}, {words.ratio(top.speedup)} in a single "
                f"session, of which the best of many is flattered{_cited([top.id])}."
            )
    return claims + _profiles(state) + _predictions(state, "held")


def _profiles(state: RunState) -> list[str]:
    known = {e.solution: e for e in searched(state)}
    seen = {p.solution: p.verdict for p in state.profiles if p.verdict}
    return [
        f"The profile of {words.point(e)} says {verdict}{_cited([e.id])}."
        for solution, verdict in seen.items()
        if (e := known.get(solution))
    ]


def tunables(state: RunState, facts: TaskFacts) -> list[str]:
    """What one tunable alone does, over all variants, the largest first."""
    found = [effect for variant in facts.variants for effect in effects(variant, _of(state, variant))]
    return [str(effect) for effect in sorted(found, key=lambda effect: -effect.ratio)]


def refuted(state: RunState, facts: TaskFacts) -> list[str]:
    known = {e.solution: e for e in searched(state)}
    claims = [
        f"{words.point(known[v.solution])} is not faster: {v.body['why']}{_cited(v.body['evaluations'])}."
        for v in state.verifications
        if v.verdict == "revoked"
    ]
    for variant in facts.variants:
        seen = _of(state, variant)
        for name, values in space.only_failed(seen).items():
            ids = [e.id for e in seen if e.failed and e.parameters.get(name) in values]
            claims.append(f"{variant} with {name} in {sorted(values)} has only ever failed{_cited(ids[:5])}.")
    return claims + _failures(state) + _predictions(state, "failed")


def _failures(state: RunState) -> list[str]:
    """Candidates that gave no result, by what went wrong."""
    causes: dict[str, list[Evaluation]] = {}
    for evaluation in searched(state):
        if evaluation.failed:
            causes.setdefault(words.result(evaluation), []).append(evaluation)
    return [f"{cause}: {_listed(failing)}." for cause, failing in causes.items()]


def _listed(evaluations: Sequence[Evaluation]) -> str:
    shown = "; ".join(f"{words.point(e)} ({e.id})" for e in evaluations[:MOST_FAILURES])
    more = len(evaluations) - MOST_FAILURES
    return f"{shown}; and {more} more" if more > 0 else shown


def still_open(state: RunState, facts: TaskFacts) -> list[str]:
    claims = _predictions(state, "undecided")
    for variant, tunables in facts.variants.items():
        values = space.whole(tunables)
        if rest := space.untried(values, _of(state, variant)):
            claims.append(f"{rest} of the {space.size(values)} points of {variant} were not measured.")
    unclear = [e for e in searched(state) if e.verdict == Verdict.INCONCLUSIVE]
    if unclear:
        ids = [e.id for e in unclear]
        claims.append(f"Candidates that the judge could not tell from the baseline: {len(ids)}{_cited(ids[:8])}.")
    return claims


def _predictions(state: RunState, verdict: str) -> list[str]:
    return [
        f"Team {g.team.number} ({g.team.move}) predicted {g.team.prediction}: {verdict}, {g.ended.outcome.observed}"
        f"{_cited(g.ended.outcome.evidence)}."
        for g in state.generations
        if g.ended and g.ended.outcome.verdict == verdict
    ]


def _of(state: RunState, variant: str) -> list[Evaluation]:
    return [e for e in searched(state) if e.variant == variant]


def _section(title: str, claims: Sequence[str]) -> str:
    shown = [f"- {claim}" for claim in claims[:MOST]] or ["- Nothing yet."]
    more = [f"- ... and {len(claims) - MOST} more, see HISTORY.md."] if len(claims) > MOST else []
    return "\n".join([f"## {title}", "", *shown, *more])


def _cited(ids: Sequence[str]) -> str:
    return f" ({', '.join(ids)})" if ids else ""
