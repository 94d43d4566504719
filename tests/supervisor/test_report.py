"""What a run leaves for people."""

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from mcp_server.schema import BenchmarkAnswer, WorkloadLine
from supervisor.display import event
from supervisor.report import history as history_page
from supervisor.report import learnings, table
from supervisor.report.summary import Summary, evidence, summarize
from supervisor.run import Run
from supervisor.schema import RunConfig, RunState, TaskFacts
from supervisor.state import replay
from supervisor.verify import workload_results
from tests.supervisor.conftest import History
from tests.supervisor.test_state import ENDED, started
from toolkits.core.schema import Interval, Status

REMEASURES = ["v1", "v2", "v3", "v4", "v5"]


@pytest.fixture
def finished(history: History) -> RunState:
    """A whole run: one generation, a failure, a winner."""
    started(history).evaluation("e3", None, role="r1", variant="a", parameters={"T": 16, "U": 1})
    history.evaluation("e4", 1.4, role="r1", solution="best", variant="a", parameters={"T": 4, "U": 8})
    history.add("plateau", {"team": 1, "kind": "ideas", "reason": "no gain for 8 evaluations", "evidence": ["e3"]})
    history.add("generation_ended", ENDED)
    history.add("search_ended", {"reason": "the rules have nothing left to try"})
    history.add("verification_started", {"solution": "best", "claim": "e4"})
    for id in REMEASURES:
        history.evaluation(id, 1.4, solution="best")
    speedup = {"value": 1.4, "low": 1.38, "high": 1.42}
    why = "all 5 re-measures passed"
    history.add(
        "winner", {"solution": "best", "claim": "e4", "evaluations": REMEASURES, "speedup": speedup, "why": why}
    )
    history.add("finished")
    return replay(history.rows)


def answer(latency: float) -> BenchmarkAnswer:
    lines = [
        WorkloadLine(
            workload=name,
            status=Status.PASSED,
            latency_us=latency * scale,
            baseline_us=140.0 * scale,
            speedup=140.0 / latency,
            low=138.0 / latency,
            high=142.0 / latency,
            floor_share=12.0 / latency,
        )
        for name, scale in (("b2_n3584_k250_d128", 1.0), ("n65536_k64_d32", 20.0))
    ]
    return BenchmarkAnswer(job="j", kind="benchmark", state="done", summary="", workloads=lines)


def summary(state: RunState) -> Summary:
    answers = [answer(700.0), *[answer(100.0) for _ in REMEASURES]]
    folder = Path("/root/runs/first")
    spent = (192.0, 0.0)
    return summarize("first", RunConfig(task="toy"), state, ("naive", "torch"), folder, answers, spent)


def test_the_table_fits_and_says_everything(finished: RunState) -> None:
    text = StringIO()
    table.show(summary(finished), Console(file=text, width=100))
    lines = text.getvalue().splitlines()
    assert max(len(line) for line in lines) <= 100
    for fact in (
        "700.0",
        "140.0",
        "100.0",
        "7.0x",
        "12%",
        "1.400x [1.380, 1.420]",
        "0 of 2 below 1.0",
        "3.2 minutes",
        "USD 0.00",
        "redesigns",
        "/root/runs/first",
        "1 promoted",
    ):
        assert fact in text.getvalue()
    assert "\x1b" not in text.getvalue()


def test_a_run_without_a_winner_says_so_plainly(history: History) -> None:
    history.evaluation("e1", 0.2)
    history.add("finished")
    text = StringIO()
    figures = summary(replay(history.rows))
    table.show(figures, Console(file=text, width=100))
    assert figures.winner is None and "toy: no faster kernel found" in text.getvalue()


def test_a_start_that_nothing_beats_is_not_called_a_find(finished: RunState) -> None:
    found = summary(finished)
    assert found.winner and found.verdict == "a faster kernel: 1.400x [1.380, 1.420] over torch, re-measured five times"
    start = found.model_copy(update={"winner": found.winner.model_copy(update={"variant": "naive"})})
    assert start.verdict.startswith("only the start is faster: 1.400x")


def test_learnings_name_evaluations_and_hardware(finished: RunState, facts: TaskFacts) -> None:
    page = learnings.render(summary(finished), finished, facts)
    holds, _, refuted, still_open = page.split("## ")[1:]
    assert "Measured on a CPU" in page
    assert "a T=4 U=8 runs at 1.400x" in holds and "v1, v2, v3, v4, v5" in holds
    assert "a with T in [16] has only ever failed (e3)" in refuted
    assert "23 of the 25 points of a were not measured" in still_open


def test_learnings_say_what_failed_and_what_was_profiled_in_words_and_not_by_hash(
    finished: RunState, history: History, facts: TaskFacts
) -> None:
    history.add("profile", {"solution": "best", "bottleneck": "compute", "verdict": "compute: 90%"})
    state = replay(history.rows)
    page = learnings.render(summary(state), state, facts)
    assert "The profile of a T=4 U=8 says compute: 90% (e4)." in page
    assert "- INCORRECT_NUMERICAL mismatch: a T=16 U=1 (e3)." in page


def test_the_second_sessions_of_the_leaders_are_in_the_history_page(history: History) -> None:
    started(history).evaluation("e3", 1.28, role="r1", solution="next", variant="a", parameters={"T": 2})
    history.add("finalists", {"solutions": ["fast", "next"], "evidence": ["e2", "e3"]})
    history.evaluation("e4", 1.25, solution="next", variant="a", parameters={"T": 2})
    state = replay(history.rows)
    page = history_page.render(summary(state), state)
    assert "a T=2: faster 1.250x [1.225, 1.275] (e4), in the search 1.280x [1.254, 1.306] (e3)" in page


def test_the_history_page_has_every_generation_and_every_evaluation(finished: RunState) -> None:
    page = history_page.render(summary(finished), finished)
    assert "## Generation 1: start" in page and "**Plateau (ideas).**" in page and "**Outcome: undecided.**" in page
    for e in finished.evaluations:
        assert f"| {e.id} |" in page


def test_the_funnel_counts_each_candidate_once(finished: RunState) -> None:
    assert summary(finished).funnel == {
        "candidates": 4,
        "compiled": 4,
        "correct": 3,
        "faster": 2,
        "re-measured": 1,
        "promoted": 1,
    }


def test_a_summary_needs_the_start_and_the_remeasures(finished: RunState) -> None:
    assert evidence(finished) == ["e1", *REMEASURES]


def test_every_decision_has_its_line_on_the_terminal(finished: RunState, history: History, facts: TaskFacts) -> None:
    class Seen(Run):
        def __init__(self) -> None:
            self.name, self.facts, self.state = "first", facts, finished

    said = [event(Seen(), row) for row in history.rows]
    spoken = "\n".join(said)
    assert all("\n" not in line for line in said)
    for fact in ("start: s-e1", "new best, ", "plateau (ideas)", "prediction undecided", "promoted best"):
        assert fact in spoken


def test_where_a_task_has_a_plan_step_the_runs_alone_are_shown_too(finished: RunState) -> None:
    runs = [Interval(value=0.96, low=0.95, high=0.97), Interval(value=0.98, low=0.97, high=0.99)]
    lines = [line.model_copy(update={"run_only": runs[0]}) for line in answer(100.0).workloads]
    again = [line.model_copy(update={"run_only": runs[1]}) for line in answer(100.0).workloads]
    measured = [answer(100.0).model_copy(update={"workloads": workloads}) for workloads in (lines, again)]
    workloads = workload_results(answer(700.0), measured)
    text = StringIO()
    table.show(summary(finished).model_copy(update={"workloads": workloads}), Console(file=text, width=100))
    assert "run only" in text.getvalue() and "0.970x" in text.getvalue()
    assert max(len(line) for line in text.getvalue().splitlines()) <= 100
