"""The run as its history tells it: rows in, one immutable state out. The same function serves a poll and a resume.

Rows of kinds it does not know are passed over, so that an older supervisor reads a newer history.
"""

import math
import statistics
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Literal

from mcp_server.schema import HistoryLine
from supervisor.schema import Ended, Evaluation, Generation, Plateau, Profile, RunState, Team, Verification
from toolkits.core.schema import Json

Step = Callable[[RunState, HistoryLine], RunState]


def replay(rows: Sequence[HistoryLine]) -> RunState:
    """Fold the whole history of one run."""
    state = RunState()
    clock = _Clock()
    for row in rows:
        state = state.model_copy(update={"active_s": clock.tick(row), "last_seq": row.seq})
        if step := STEPS.get(row.kind):
            state = step(state, row)
    return state


class _Clock:
    """Active time: what passes between two rows counts, unless a new session of the supervisor begins there."""

    def __init__(self) -> None:
        self._active_s = 0.0
        self._last: datetime | None = None

    def tick(self, row: HistoryLine) -> float:
        at = datetime.fromisoformat(row.at)
        if self._last and row.kind != "session_started":
            self._active_s += max(0.0, (at - self._last).total_seconds())
        self._last = at
        return self._active_s


def _session_started(state: RunState, row: HistoryLine) -> RunState:
    return state.model_copy(update={"device": str(row.body["device"]), "interrupted": False})


def _role_started(state: RunState, row: HistoryLine) -> RunState:
    role = (str(row.body["name"]), int(row.body["team"]))
    return state.model_copy(update={"roles": state.roles | {str(row.body["role"]): role}})


def _evaluation(state: RunState, row: HistoryLine) -> RunState:
    evaluation = _evaluation_of(state, row)
    state = state.model_copy(update={"evaluations": [*state.evaluations, evaluation]})
    if evaluation.purpose != "verify":
        return state
    claim = state.verifications[-1]
    return _with_verification(state, claim.model_copy(update={"evaluations": [*claim.evaluations, evaluation.id]}))


def _evaluation_of(state: RunState, row: HistoryLine) -> Evaluation:
    known = {name: value for name, value in row.body.items() if name in Evaluation.model_fields and value is not None}
    # A role's last evaluation may end after its team: it still belongs to that team.
    role, team = state.roles.get(row.role, (row.role, 0))
    known |= {"id": row.body["evaluation"], "seq": row.seq, "at_s": state.active_s, "role": role, "team": team}
    return Evaluation(**known, purpose=_purpose(state, row))


def _purpose(state: RunState, row: HistoryLine) -> Literal["start", "search", "final", "verify"]:
    if row.role:
        return "search"
    if _verifying(state, row.body):
        return "verify"
    return "final" if row.body["solution"] in state.finalists else "start"


def _verifying(state: RunState, body: Json) -> bool:
    last = state.verifications[-1] if state.verifications else None
    return last is not None and last.verdict == "open" and last.solution == body["solution"]


def _profile(state: RunState, row: HistoryLine) -> RunState:
    profile = Profile(
        seq=row.seq,
        solution=str(row.body.get("solution") or row.body.get("target", "")),
        bottleneck=str(row.body.get("bottleneck", "unknown")),
        verdict=str(row.body.get("verdict", "")),
    )
    return state.model_copy(update={"profiles": [*state.profiles, profile]})


def _generation_started(state: RunState, row: HistoryLine) -> RunState:
    team = Team.model_validate(row.body)
    generation = Generation(team=team, seq=row.seq, started_s=state.active_s)
    return state.model_copy(update={"generations": [*state.generations, generation]})


def _plateau(state: RunState, row: HistoryLine) -> RunState:
    plateau = Plateau.model_validate({name: row.body[name] for name in Plateau.model_fields})
    return _with_generation(state, state.generations[-1].model_copy(update={"plateau": plateau}))


def _generation_ended(state: RunState, row: HistoryLine) -> RunState:
    ended = Ended.model_validate({name: row.body[name] for name in Ended.model_fields})
    return _with_generation(state, state.generations[-1].model_copy(update={"ended": ended}))


def _finalists(state: RunState, row: HistoryLine) -> RunState:
    return state.model_copy(update={"finalists": list(row.body["solutions"])})


def _verification_started(state: RunState, row: HistoryLine) -> RunState:
    claim = Verification(solution=row.body["solution"], claim=row.body["claim"])
    return state.model_copy(update={"verifications": [*state.verifications, claim]})


def _winner(state: RunState, row: HistoryLine) -> RunState:
    return _judged(state, row, "promoted")


def _revoked(state: RunState, row: HistoryLine) -> RunState:
    return _judged(state, row, "revoked")


def _judged(state: RunState, row: HistoryLine, verdict: str) -> RunState:
    return _with_verification(state, state.verifications[-1].model_copy(update={"verdict": verdict, "body": row.body}))


def _search_ended(state: RunState, row: HistoryLine) -> RunState:
    return state.model_copy(update={"stopped_because": str(row.body["reason"])})


def _finished(state: RunState, row: HistoryLine) -> RunState:
    return state.model_copy(update={"finished": True})


def _interrupted(state: RunState, row: HistoryLine) -> RunState:
    return state.model_copy(update={"interrupted": True})


STEPS: dict[str, Step] = {
    "session_started": _session_started,
    "role_started": _role_started,
    "evaluation": _evaluation,
    "profile": _profile,
    "generation_started": _generation_started,
    "plateau": _plateau,
    "generation_ended": _generation_ended,
    "search_ended": _search_ended,
    "finalists": _finalists,
    "verification_started": _verification_started,
    "winner": _winner,
    "revoked": _revoked,
    "interrupted": _interrupted,
    "finished": _finished,
}


def _with_generation(state: RunState, generation: Generation) -> RunState:
    return state.model_copy(update={"generations": [*state.generations[:-1], generation]})


def _with_verification(state: RunState, verification: Verification) -> RunState:
    return state.model_copy(update={"verifications": [*state.verifications[:-1], verification]})


# --- reading the state ----------------------------------------------------------------------------------------------


def best(evaluations: Sequence[Evaluation]) -> Evaluation | None:
    """The timed evaluation with the highest lower bound: what is most surely fast, not what was luckiest."""
    timed = [e for e in evaluations if e.timed]
    return max(timed, key=lambda e: e.speedup.low if e.speedup else 0.0, default=None)


def searched(state: RunState) -> list[Evaluation]:
    """The start and what the teams measured; no candidate twice."""
    return [e for e in state.evaluations if e.purpose in ("start", "search")]


def promising(state: RunState) -> list[Evaluation]:
    """What the search saw above 1.0, the most surely fast first; a figure that its judge calls inconclusive too."""
    above = [e for e in searched(state) if e.timed and e.speedup and e.speedup.low > 1]
    return sorted(above, key=lambda e: -(e.speedup.low if e.speedup else 0.0))


def candidates(state: RunState) -> list[Evaluation]:
    """What may be the winner, best first: called faster by the judge in some session, and not yet re-measured.

    The finalists come first, by the mean of their sessions; one that failed in its second session is out.
    """
    tried = {v.solution for v in state.verifications if v.verdict != "open"}
    failed = {e.solution for e in state.evaluations if e.purpose == "final" and e.failed}
    faster = {e.solution for e in state.evaluations if e.purpose != "verify" and e.faster}
    left = [e for e in promising(state) if e.solution in faster - tried - failed]
    return sorted(left, key=lambda e: (e.solution not in state.finalists, -_merit(state, e)))


def _merit(state: RunState, candidate: Evaluation) -> float:
    """Mean of a finalist's sessions: between leaders, the search's single figure favours the luckiest."""
    if candidate.solution not in state.finalists:
        return candidate.speedup.low if candidate.speedup else 0.0
    sessions = [e for e in state.evaluations if e.purpose != "verify" and e.solution == candidate.solution]
    return math.exp(statistics.fmean(math.log(e.speedup.value) for e in sessions if e.timed and e.speedup))
