"""The figures of a run, computed once from its state; every report shows these and computes none of its own."""

from collections.abc import Sequence
from pathlib import Path

from mcp_server.schema import BenchmarkAnswer
from supervisor import verify
from supervisor.report import words
from supervisor.schema import Evaluation, RunConfig, RunState
from supervisor.state import best, candidates, searched
from supervisor.verify import WorkloadResult
from toolkits.core.schema import Interval, Record, Status


class Winner(Record):
    """The candidate whose claim held."""

    solution: str
    path: str
    """Its stored sources; `kernel-lab benchmark TASK PATH` measures them again."""
    variant: str
    parameters: dict[str, int]
    evaluations: list[str]
    """The five re-measures."""
    speedup: Interval
    worst: float
    worst_workload: str
    below_one: int


class Summary(Record):
    """What came out, what it cost, and where it is."""

    run: str
    task: str
    device: str
    finished: bool
    winner: Winner | None
    revoked: list[str]
    """Solutions whose claim did not hold."""
    unverified: int
    """Candidates that looked faster and were not re-measured; of interest when there is no winner."""
    best: Interval | None
    """Of the search, not yet re-measured."""
    stopped_because: str
    start: str
    baseline: str
    workloads: list[WorkloadResult]
    evaluations: int
    minutes: float
    usd: float
    generations: int
    redesigns: int
    """Generations that a detected plateau brought about."""
    funnel: dict[str, int]
    folder: Path

    @property
    def verdict(self) -> str:
        """The result in one sentence."""
        if self.winner:
            what = "only the start is faster" if self.winner.variant == self.start else "a faster kernel"
            return f"{what}: {words.ratio(self.winner.speedup)} over {self.baseline}, re-measured five times"
        if not self.finished:
            return "not finished: the same command goes on"
        claims = f"; revoked on re-measuring: {len(self.revoked)}" if self.revoked else ""
        more = f"; claims that the budget left unverified: {self.unverified}" if self.unverified else ""
        return f"no faster kernel found{claims}{more}"


def summarize(
    run: str,
    config: RunConfig,
    state: RunState,
    names: tuple[str, str],
    folder: Path,
    answers: Sequence[BenchmarkAnswer],
    spent: tuple[float, float],
) -> Summary:
    """`names`: start and baseline; `answers`: of the start, then of the winner's re-measures; `spent`: seconds, USD."""
    workloads = verify.workload_results(answers[0], answers[1:]) if answers else []
    top = best(searched(state))
    return Summary(
        run=run,
        task=config.task,
        device=state.device,
        finished=state.finished,
        winner=_winner(state, workloads, folder),
        revoked=[v.solution for v in state.verifications if v.verdict == "revoked"],
        unverified=len({e.solution for e in candidates(state)}),
        best=top.speedup if top else None,
        stopped_because=state.stopped_because,
        start=names[0],
        baseline=names[1],
        workloads=workloads,
        evaluations=len(state.evaluations),
        minutes=round(spent[0] / 60, 2),
        usd=round(spent[1], 2),
        generations=len(state.generations),
        redesigns=sum(g.plateau is not None for g in state.generations[:-1]),
        funnel=funnel(state),
        folder=folder,
    )


def funnel(state: RunState) -> dict[str, int]:
    """How many candidates came how far; each once, re-measures apart."""
    seen = {e.solution: e for e in searched(state)}.values()
    timed = [e for e in seen if e.timed]
    return {
        "candidates": len(seen),
        "compiled": sum(e.status not in (Status.COMPILE_ERROR, Status.HARNESS_ERROR) for e in seen),
        "correct": len(timed),
        "faster": sum(e.faster for e in timed),
        "re-measured": len(state.verifications),
        "promoted": sum(v.verdict == "promoted" for v in state.verifications),
    }


def evidence(state: RunState) -> list[str]:
    """Evaluations whose records a summary needs: the start's, then the winner's re-measures."""
    start = [e.id for e in state.evaluations if e.purpose == "start" and e.timed][:1]
    promoted = [v for v in state.verifications if v.verdict == "promoted"]
    return start + [str(id) for v in promoted for id in v.body["evaluations"]] if start else []


def _winner(state: RunState, workloads: Sequence[WorkloadResult], folder: Path) -> Winner | None:
    promoted = next((v for v in state.verifications if v.verdict == "promoted"), None)
    if promoted is None:
        return None
    claim = _evaluation(state, promoted.claim)
    rated = [(w.speedup.value, w.workload) for w in workloads if w.speedup]
    worst, where = min(rated, default=(0.0, ""))
    return Winner(
        solution=promoted.solution,
        path=str(folder.parent.parent / "solutions" / promoted.solution),
        variant=claim.variant,
        parameters=claim.parameters,
        evaluations=promoted.body["evaluations"],
        speedup=Interval.model_validate(promoted.body["speedup"]),
        worst=worst,
        worst_workload=where,
        below_one=sum(value < 1 for value, _ in rated),
    )


def _evaluation(state: RunState, id: str) -> Evaluation:
    return next(e for e in state.evaluations if e.id == id)
