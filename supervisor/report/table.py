"""The final table on the terminal; fits 100 columns."""

from rich.console import Console
from rich.table import Table

from supervisor.report import words
from supervisor.report.summary import Summary
from supervisor.verify import WorkloadResult

WIDTH = 100


def show(summary: Summary, console: Console) -> None:
    """Per workload first, then what it comes to, what it cost and where it is."""
    _line(console, f"{summary.task}: {summary.verdict}", "bold green" if summary.winner else "bold")
    console.print(_workloads(summary), width=WIDTH, crop=False)
    for line in facts(summary):
        _line(console, line)


def _line(console: Console, text: str, style: str = "") -> None:
    """As it is: paths stay in one piece."""
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def _workloads(summary: Summary) -> Table:
    table = Table(width=WIDTH, title=f"CPU time a call in us, on {summary.device}", title_justify="left")
    table.add_column("workload", overflow="fold")
    for column in (
        f"start ({summary.start})",
        f"{summary.baseline}",
        "winner",
        f"vs {summary.baseline} [99 %]",
        "vs start",
        "run only" if _planned(summary) else "of device",
    ):
        table.add_column(column, justify="right")
    for workload in summary.workloads:
        table.add_row(*_row(workload, planned=_planned(summary)))
    return table


def _planned(summary: Summary) -> bool:
    """Whether the task has a plan step: all else in the table is of plan and run together."""
    return any(workload.run_only for workload in summary.workloads)


def _row(w: WorkloadResult, *, planned: bool) -> list[str]:
    over_naive = "-" if w.over_naive is None else f"{w.over_naive:.1f}x"
    last = (f"{w.run_only.value:.3f}x" if w.run_only else "-") if planned else words.share(w.floor_share)
    latencies = [words.latency(us) for us in (w.naive_us, w.baseline_us, w.winner_us)]
    return [w.workload, *latencies, words.ratio(w.speedup), over_naive, last]


def facts(summary: Summary) -> list[str]:
    """The lines below the table."""
    return [
        *_winner_lines(summary),
        f"{summary.evaluations} evaluations, {summary.minutes:.1f} minutes, USD {summary.usd:.2f}; "
        f"generations: {summary.generations}, redesigns after a plateau: {summary.redesigns}",
        ", ".join(f"{count} {stage}" for stage, count in summary.funnel.items()),
        *([f"the search ended: {summary.stopped_because}"] if summary.stopped_because else []),
        f"LEARNINGS.md and HISTORY.md are in {summary.folder}",
    ]


def _winner_lines(summary: Summary) -> list[str]:
    w = summary.winner
    if w is None:
        return [f"best of the search: {words.ratio(summary.best)} against {summary.baseline}"]
    what = " ".join(f"{name}={value}" for name, value in w.parameters.items())
    return [
        f"winner: {w.variant} {what}".rstrip(),
        f"geometric mean {words.ratio(w.speedup)}; worst workload {w.worst_workload} {w.worst:.3f}x; "
        f"{w.below_one} of {len(summary.workloads)} below 1.0",
        f"sources: {w.path}",
    ]
