"""From the leaders of the search to a result, on a lab whose figures are written down beforehand."""

from pathlib import Path

import pytest

from mcp_server.schema import BenchmarkAnswer, HistoryLine
from supervisor import winner
from supervisor.client import Lab
from supervisor.run import Run
from supervisor.schema import RunConfig, TaskFacts
from tests.supervisor.conftest import History
from tests.supervisor.test_state import started
from toolkits.core.schema import Json

pytestmark = pytest.mark.anyio


class WrittenLab(Lab):
    """Answers from a history; every session of a solution gives the next of its figures, None a failure."""

    def __init__(self, history: History, figures: dict[str, list[float | None]]) -> None:
        self.written = history
        self.figures = figures

    async def history(self, after: int) -> list[HistoryLine]:
        return self.written.rows[after:]

    async def record(self, kind: str, body: Json) -> HistoryLine:
        return self.written.add(kind, body)

    async def evaluate(self, task: str, path: str, *, fresh: bool = False) -> BenchmarkAnswer:
        assert fresh, "what is measured again is not answered from the records"
        solution = Path(path).name
        self.written.evaluation(f"m{len(self.written.rows)}", self.figures[solution].pop(0), solution=solution)
        return BenchmarkAnswer(job="j", kind="benchmark", state="done", summary="")


async def verified(
    history: History, facts: TaskFacts, figures: dict[str, list[float | None]], evaluations: int = 60
) -> Run:
    config = RunConfig(task="toy", evaluations=evaluations)
    lab = WrittenLab(history, figures)
    run = Run(lab, "first", config, facts, Path("/root/runs/first"), 0.0, lambda run, new: None)
    await run.load()
    await winner.verify_claims(run)
    return run


def verdicts(run: Run) -> list[tuple[str, str]]:
    return [(v.solution, v.verdict) for v in run.state.verifications]


async def test_leaders_that_cannot_be_told_apart_are_measured_again_and_the_steadier_is_claimed(
    history: History, facts: TaskFacts
) -> None:
    started(history).evaluation("e3", 1.28, role="r1", solution="steady")
    run = await verified(history, facts, {"fast": [1.1], "steady": [1.28] * 6})
    assert [e.solution for e in run.state.evaluations if e.purpose == "final"] == ["fast", "steady"]
    assert verdicts(run) == [("steady", "promoted")]


async def test_a_leader_beyond_doubt_is_claimed_at_once(history: History, facts: TaskFacts) -> None:
    started(history).evaluation("e3", 1.1, role="r1", solution="slow")
    run = await verified(history, facts, {"fast": [1.3] * 5})
    assert run.state.finalists == [] and verdicts(run) == [("fast", "promoted")]


async def test_a_revoked_claim_gives_way_to_the_next_leader(history: History, facts: TaskFacts) -> None:
    started(history).evaluation("e3", 1.28, role="r1", solution="steady")
    run = await verified(history, facts, {"fast": [1.3, None], "steady": [1.25] * 6})
    assert verdicts(run) == [("fast", "revoked"), ("steady", "promoted")]


async def test_an_interrupted_comparison_goes_on_with_what_is_missing(history: History, facts: TaskFacts) -> None:
    started(history).evaluation("e3", 1.28, role="r1", solution="steady")
    history.add("finalists", {"solutions": ["fast", "steady"], "evidence": ["e2", "e3"]})
    history.evaluation("e4", 1.1, solution="fast")
    run = await verified(history, facts, {"steady": [1.28] * 6})
    assert verdicts(run) == [("steady", "promoted")]


async def test_without_evaluations_for_a_comparison_the_best_of_the_search_is_claimed(
    history: History, facts: TaskFacts
) -> None:
    started(history).evaluation("e3", 1.28, role="r1", solution="steady")
    run = await verified(history, facts, {"fast": [1.3] * 5}, evaluations=8)
    assert verdicts(run) == [("fast", "promoted")]


async def test_nothing_above_the_baseline_leaves_nothing_to_claim(history: History, facts: TaskFacts) -> None:
    history.evaluation("e1", 0.2)
    run = await verified(history, facts, {})
    assert verdicts(run) == [] and len(run.state.evaluations) == 1
