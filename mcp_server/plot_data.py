"""What a plot shows, read from the ledger. Knows no library that draws."""

from typing import Literal

from mcp_server.figures import ratio
from mcp_server.ledger import EvaluationRow, Ledger
from mcp_server.schema import HistoryLine
from toolkits.core.errors import InvalidInput
from toolkits.core.schema import Interval, Record, Verdict

MOST = 1000
"""Evaluations of a run that are drawn: the last."""


class Point(Record):
    """One evaluation of a run."""

    number: int
    speedup: Interval | None
    """None: it did not pass, or was not timed."""
    verdict: Verdict | None
    failed: bool


class Progress(Record):
    """How a run came to its best kernel."""

    kind: Literal["progress"] = "progress"
    title: str
    baseline: str
    points: list[Point]
    generations: list[int]
    """The number of the first evaluation of each."""


class Bar(Record):
    """One workload of an evaluation."""

    workload: str
    status: str
    speedup: Interval | None
    share: float | None
    """Of what the device could do, 0 to 1."""


class ByWorkload(Record):
    """One evaluation, workload by workload."""

    kind: Literal["workloads"] = "workloads"
    title: str
    baseline: str
    bars: list[Bar]


def of_run(ledger: Ledger, run: str) -> Progress:
    """The evaluations of the task that was measured last, of all of its workloads."""
    rows = ledger.evaluations(run=run, limit=MOST)
    rows = [row for row in rows if _of_all(row)]
    rows = [row for row in rows if row.task == rows[-1].task]
    if not rows:
        raise InvalidInput(f"nothing was measured in {f'run {run!r}' if run else 'this workspace outside a run'} yet")
    points = [_point(number, row) for number, row in enumerate(rows, 1)]
    passed = [point for point in points if point.speedup]
    best = max((point.speedup for point in passed if point.speedup), key=lambda speedup: speedup.value, default=None)
    title = f"{rows[-1].task}: {f'best {ratio(best)}' if best else 'none passed'}, {len(rows)} evaluations"
    return Progress(title=title, baseline=_baseline(rows[-1]), points=points, generations=_starts(ledger, run, rows))


def of_evaluation(row: EvaluationRow) -> ByWorkload:
    result = row.result
    bars = [
        Bar(workload=each.workload, status=each.status, speedup=each.speedup, share=each.floor_share)
        for each in result.measurements
    ]
    if not any(bar.speedup for bar in bars):
        raise InvalidInput(
            f"evaluation {row.id} has no times (mode {result.mode}, {result.status}): benchmark a solution that passes "
            "in mode full, and plot that"
        )
    overall = f"{result.verdict}, {ratio(result.speedup)}" if result.speedup else str(result.status)
    return ByWorkload(title=f"{row.task} {row.id}: {overall}", baseline=_baseline(row), bars=bars)


def _of_all(row: EvaluationRow) -> bool:
    return row.result.total == row.result.of_task or row.result.status != "PASSED"


def _point(number: int, row: EvaluationRow) -> Point:
    result = row.result
    return Point(
        number=number, speedup=result.speedup, verdict=result.verdict, failed=result.status not in ("PASSED", "SKIPPED")
    )


def _baseline(row: EvaluationRow) -> str:
    return row.result.baseline.partition(" ")[0] or "the baseline"


def _starts(ledger: Ledger, run: str, rows: list[EvaluationRow]) -> list[int]:
    """Counted by history: an evaluation belongs to the generation that started last before it."""
    numbers = {row.id: number for number, row in enumerate(rows, 1)}
    starts: list[int] = []
    pending = False
    for event in _events(ledger, run):
        pending = pending or event.kind == "generation_started"
        number = numbers.get(str(event.body.get("evaluation", "")))
        if pending and number:
            starts.append(number)
            pending = False
    return starts


def _events(ledger: Ledger, run: str) -> list[HistoryLine]:
    return ledger.history(run, limit=20 * MOST, kinds=("generation_started", "evaluation")) if run else []
