"""Progress on the terminal: a live panel where there is one, one plain line an event elsewhere. Decides nothing."""

from collections import deque
from collections.abc import Sequence
from contextlib import AbstractContextManager
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from mcp_server.schema import HistoryLine
from supervisor.report import words
from supervisor.run import Run
from supervisor.state import best, searched

LAST_EVENTS = 8
WIDTH = 100
ECHO = 3
"""Columns left free for the `^C` that a terminal echoes: on a line of its own it would leave a part of the panel."""


class Display(AbstractContextManager["Display"]):
    """Silent; what `--json` uses."""

    def watch(self, run: Run, new: Sequence[HistoryLine]) -> None:
        """Called by the loop whenever something may have changed."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class PlainDisplay(Display):
    """One line an event, no control codes."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._activity = ""

    def watch(self, run: Run, new: Sequence[HistoryLine]) -> None:
        for row in new:
            if text := event(run, row):
                self._say(run, text)
        if run.activity != self._activity:
            self._activity = run.activity
            self._say(run, run.activity)

    def _say(self, run: Run, text: str) -> None:
        self._console.print(f"{run.elapsed_s:6.1f}s  {text}", markup=False, highlight=False, soft_wrap=True)


class LiveDisplay(Display):
    """Score, budget, who does what and the last events; what is decided scrolls by above and stays."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._events: deque[str] = deque(maxlen=LAST_EVENTS)
        self._run: Run | None = None
        self._live = Live(console=console, get_renderable=self._render, refresh_per_second=2, transient=True)

    def __enter__(self) -> "LiveDisplay":
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def watch(self, run: Run, new: Sequence[HistoryLine]) -> None:
        self._run = run
        for row in new:
            text = event(run, row)
            if text and row.kind == "evaluation":
                self._events.append(text)
            elif text:
                self._console.print(_dated(run.elapsed_s, text))

    def _render(self) -> RenderableType:
        run = self._run
        if run is None:
            return Text("starting the lab ...")
        title = f"{run.name}: {run.facts.name} against {run.facts.baseline}"
        parts = [_score(run), _budget(run), Text(""), _roles(run), self._last()]
        return Panel(Group(*parts), title=title, width=min(WIDTH, self._console.width - ECHO))

    def _last(self) -> Text:
        return Text("\n".join(self._events), style="dim", no_wrap=True, overflow="ellipsis")


def _dated(elapsed_s: float, text: str) -> Table:
    """An event, its further lines under the first."""
    grid = Table.grid(padding=(0, 2))
    grid.add_row(f"{elapsed_s:6.1f}s", Text(text))
    return grid


def _score(run: Run) -> Text:
    top = run.best
    score = f"best {words.ratio(top.speedup)}   {words.point(top)}" if top else "nothing measured yet"
    style = "bold green" if top and top.speedup and top.speedup.low > 1 else "bold"
    return Text(score, style=style, no_wrap=True, overflow="ellipsis")


def _budget(run: Run) -> Table:
    grid = Table.grid(padding=(0, 2))
    minutes, used = run.config.minutes, len(run.state.evaluations)
    grid.add_row("evaluations", _bar(used, run.config.evaluations), f"{used} of {run.config.evaluations}")
    grid.add_row("minutes", _bar(run.elapsed_s, minutes * 60), f"{run.elapsed_s / 60:.1f} of {minutes:g}")
    grid.add_row("USD", _bar(run.usd, run.config.usd), f"{run.usd:.2f} of {run.config.usd:.2f}")
    return grid


def _bar(used: float, total: float) -> ProgressBar:
    return ProgressBar(total=total or 1.0, completed=min(used, total), width=40)


def _roles(run: Run) -> RenderableType:
    grid = Table.grid(padding=(0, 2))
    for role in run.roles:
        grid.add_row(role.name, role.state, f"{role.evaluations} evaluations", f"best {words.ratio(role.best)}")
    return Group(Text(run.activity), grid)


# --- events ---------------------------------------------------------------------------------------------------------


def event(run: Run, row: HistoryLine) -> str:
    """One line for a row of the history; empty for rows that only machines need."""
    body = row.body
    match row.kind:
        case "session_started":
            so_far = len([e for e in run.state.evaluations if e.seq < row.seq])
            resumed = f", resumed after {so_far} evaluations" if so_far else ""
            return f"run {run.name} of {run.facts.name} on {body['device']}{resumed}"
        case "evaluation":
            return _evaluation(run, row)
        case "profile":
            return f"profile: {body['verdict']}" if body["verdict"] else f"no profile: {body.get('why', 'unknown')}"
        case "generation_started":
            return f"team {body['number']} ({body['move']}): {body['diagnosis']}"
        case "plateau":
            return f"plateau ({body['kind']}): {body['reason']}"
        case "generation_ended":
            outcome = body["outcome"]
            return (
                f"team {body['team']} ended ({body['reason']}), prediction {outcome['verdict']}: {outcome['observed']}"
            )
        case "search_ended":
            return f"the search ended: {body['reason']}"
        case "finalists":
            return f"choosing between {len(body['solutions'])} leaders by a second session each"
        case "winner":
            return f"promoted {body['solution']}: {body['why']}"
        case "revoked":
            return f"revoked {body['solution']}: {body['why']}"
        case "interrupted":
            return "interrupted; the same command goes on"
        case _:
            return ""


def _evaluation(run: Run, row: HistoryLine) -> str:
    number = next(n for n, e in enumerate(run.state.evaluations, start=1) if e.seq == row.seq)
    evaluation = run.state.evaluations[number - 1]
    top = best([e for e in searched(run.state) if e.seq <= row.seq])
    mark = "new best, " if top and top.seq == row.seq else ""
    who = evaluation.role or evaluation.purpose
    return f"{number:3d} {who}: {words.point(evaluation)}: {mark}{words.result(evaluation)}"
