"""HISTORY.md: what was done, in order. Rendered from the history, never read back."""

from supervisor.report import words
from supervisor.report.summary import Summary
from supervisor.schema import Evaluation, Generation, RunState, Verification


def render(summary: Summary, state: RunState) -> str:
    parts = [
        f"# History of run {summary.run}",
        f"Task `{summary.task}` on {summary.device}. {summary.verdict[0].upper()}{summary.verdict[1:]}.",
        f"{summary.evaluations} evaluations, {summary.minutes:.1f} minutes, USD {summary.usd:.2f}, "
        f"generations: {summary.generations}, redesigns after a plateau: {summary.redesigns}.",
        *[_generation(generation) for generation in state.generations],
        f"The search ended: {state.stopped_because}." if state.stopped_because else "",
        _finals(state),
        *[_verification(verification) for verification in state.verifications],
        "## Evaluations",
        _table(state.evaluations),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _generation(generation: Generation) -> str:
    team = generation.team
    roles = "\n".join(
        f"- `{role.name}` ({role.agent}, {role.evaluations} evaluations): {role.mission}" for role in team.roles
    )
    lines = [
        f"## Generation {team.number}: {team.move}",
        f"**Diagnosis.** {team.diagnosis}{_cited(team.evidence)}",
        f"**Plan.** {team.plan}.\n\n{roles}",
        f"**Prediction.** {team.prediction}.",
    ]
    if generation.plateau:
        plateau = generation.plateau
        lines.append(f"**Plateau ({plateau.kind}).** {plateau.reason}{_cited(plateau.evidence)}.")
    return "\n\n".join([*lines, _ended(generation)])


def _ended(generation: Generation) -> str:
    ended = generation.ended
    if ended is None:
        return "Still at work."
    gain = f"gain {ended.gain:.3f}x, " if ended.gain else ""
    spend = f"{ended.spend.evaluations} evaluations, {words.duration(ended.spend.seconds)}, USD {ended.spend.usd:.2f}"
    return (
        f"**Outcome: {ended.outcome.verdict}.** {ended.outcome.observed}{_cited(ended.outcome.evidence)}. "
        f"Ended by {ended.reason}; {gain}{spend}; best of the run {words.ratio(ended.best)}."
    )


def _finals(state: RunState) -> str:
    """The leaders' second sessions; empty without any."""
    sessions = [e for e in state.evaluations if e.purpose == "final"]
    if not sessions:
        return ""
    lines = [f"- {words.point(e)}: {words.result(e)} ({e.id}), {_first_session(state, e)}" for e in sessions]
    why = "A second session for each leader that the first could not tell from the best; the claim goes by both."
    return "\n\n".join(["## Choosing between the leaders", why, "\n".join(lines)])


def _first_session(state: RunState, e: Evaluation) -> str:
    first = next(f for f in state.evaluations if f.solution == e.solution)
    return f"in the search {words.ratio(first.speedup)} ({first.id})"


def _verification(verification: Verification) -> str:
    lines = [
        f"## Re-measuring {verification.solution}: {verification.verdict}",
        f"The claim rests on evaluation {verification.claim}.",
    ]
    if verification.body:
        lines.append(f"{verification.body['why']}{_cited(verification.body['evaluations'])}.")
    return "\n\n".join(lines)


def _table(evaluations: list[Evaluation]) -> str:
    head = "| # | evaluation | team | role | what | result | seconds |\n|---:|---|---:|---|---|---|---:|"
    return "\n".join([head, *[_row(number, e) for number, e in enumerate(evaluations, start=1)]])


def _row(number: int, e: Evaluation) -> str:
    who = f"{e.id} | {e.team or ''} | {e.role or e.purpose}"
    return f"| {number} | {who} | {words.point(e)} | {words.result(e)} | {e.seconds:.1f} |"


def _cited(evidence: list[str]) -> str:
    return f" ({', '.join(evidence)})" if evidence else ""
