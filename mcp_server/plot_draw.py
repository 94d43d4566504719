"""Draws a plot: data as JSON in, a PNG out. A process of its own, since it loads what no server should.

python -P -m mcp_server.plot_draw DATA.json PLOT.png
"""

import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullFormatter
from pydantic import TypeAdapter

from mcp_server.plot_data import ByWorkload, Point, Progress
from toolkits.core.schema import Interval

COLOURS = {"faster": "#1a7f37", "slower": "#bc4c00", "tie": "#57606a", "inconclusive": "#8c959f", None: "#57606a"}
FAILED, GRID = "#cf222e", "#d0d7de"
WIDTH_IN, HEIGHT_IN, DPI = 8.0, 4.5, 110
LOG_BEYOND = 5.0
"""Speedups that lie further apart are drawn on a logarithmic axis."""
NAMED = 12
"""Generations that get a number; more would run into each other."""


def main() -> None:
    source, target = sys.argv[1:]
    plot = TypeAdapter[Progress | ByWorkload](Progress | ByWorkload).validate_json(Path(source).read_bytes())
    pyplot.rcParams.update({"font.size": 11, "axes.grid": True, "grid.color": GRID, "axes.axisbelow": True})
    figure = _progress(plot) if isinstance(plot, Progress) else _workloads(plot)
    figure.savefig(target, dpi=DPI)


def _progress(plot: Progress) -> Any:
    figure, axes = _figure(1)
    axes = axes[0]
    timed = [point for point in plot.points if point.speedup]
    _scale([point.speedup for point in timed if point.speedup], axes.set_yscale)
    for point in timed:
        _mark(axes, point)
    _best(axes, timed)
    failed = [point.number for point in plot.points if point.failed]
    axes.plot(failed, [0.02] * len(failed), "x", color=FAILED, transform=axes.get_xaxis_transform(), clip_on=False)
    _generations(axes, plot.generations)
    axes.axhline(1.0, color="black", linewidth=1)
    axes.set_xlim(0, max(len(plot.points), 2) + 1)
    axes.set_xlabel("evaluation")
    axes.set_ylabel(f"speedup over {plot.baseline}")
    _legend(axes, timed, failed)
    figure.suptitle(plot.title, fontweight="bold")
    return figure


def _mark(axes: Any, point: Point) -> None:
    assert point.speedup
    value, low, high = point.speedup.value, point.speedup.low, point.speedup.high
    error = [[max(value - low, 0)], [max(high - value, 0)]]
    axes.errorbar(point.number, value, error, fmt="o", markersize=4, color=COLOURS[point.verdict], elinewidth=1)


def _best(axes: Any, timed: list[Point]) -> None:
    """The best so far, as a step at each evaluation that raised it."""
    best, numbers, values = 0.0, list[int](), list[float]()
    for point in timed:
        if point.speedup and point.speedup.value > best:
            best = point.speedup.value
        numbers.append(point.number)
        values.append(best)
    axes.step(numbers, values, where="post", color="#0969da", linewidth=2, zorder=1)


def _generations(axes: Any, starts: list[int]) -> None:
    for number, start in enumerate(starts, 1):
        axes.axvline(start - 0.5, color="#8250df", linewidth=1, linestyle=":")
        if len(starts) <= NAMED:
            place = {"transform": axes.get_xaxis_transform(), "va": "top", "color": "#8250df", "fontsize": 9}
            axes.text(start - 0.3, 0.99, f"team {number}", **place)


def _legend(axes: Any, timed: list[Point], failed: list[int]) -> None:
    found = {point.verdict for point in timed}
    entries = [(verdict, COLOURS[verdict], "o") for verdict in ("faster", "tie", "inconclusive", "slower")]
    for verdict, colour, marker in entries:
        if verdict in found:
            axes.plot([], [], marker, color=colour, markersize=5, label=verdict)
    if failed:
        axes.plot([], [], "x", color=FAILED, label="failed")
    axes.plot([], [], color="#0969da", linewidth=2, label="best so far")
    axes.figure.legend(loc="outside lower center", ncols=6, fontsize=9, frameon=False)


def _workloads(plot: ByWorkload) -> Any:
    shares = any(bar.share is not None for bar in plot.bars)
    figure, axes = _figure(2 if shares else 1)
    rows = range(len(plot.bars))
    _speedups(axes[0], plot)
    axes[0].set_yticks(rows, [bar.workload for bar in plot.bars])
    axes[0].set_xlabel(f"speedup over {plot.baseline} (99 % interval)")
    axes[0].invert_yaxis()
    if shares:
        _shares(axes[1], plot)
    figure.suptitle(plot.title, fontweight="bold")
    return figure


def _speedups(axes: Any, plot: ByWorkload) -> None:
    _scale([bar.speedup for bar in plot.bars if bar.speedup], axes.set_xscale)
    axes.axvline(1.0, color="black", linewidth=1)
    for row, bar in enumerate(plot.bars):
        if bar.speedup is None:
            place = {"transform": axes.get_yaxis_transform(), "va": "center", "color": FAILED, "fontsize": 9}
            axes.text(0.02, row, bar.status, **place)
            continue
        value, low, high = bar.speedup.value, bar.speedup.low, bar.speedup.high
        colour = COLOURS["faster" if low > 1 else "slower" if high < 1 else "tie"]
        error = [[max(value - low, 0)], [max(high - value, 0)]]
        axes.errorbar(value, row, xerr=error, fmt="o", color=colour, elinewidth=2, capsize=4)
        axes.annotate(f"{value:.3g}x", (value, row), (0, 8), textcoords="offset points", ha="center", fontsize=9)
    axes.margins(x=0.15)
    axes.set_ylim(-0.7, len(plot.bars) - 0.3)


def _shares(axes: Any, plot: ByWorkload) -> None:
    """How near each comes to the roofline: its least bytes and operations at the best speeds seen."""
    percents = [100 * (bar.share or 0) for bar in plot.bars]
    bars = axes.barh(range(len(percents)), percents, color="#0969da", height=0.5)
    axes.bar_label(bars, [f" {percent:.2g} %" if percent else "" for percent in percents], fontsize=9)
    axes.set_xlim(0, 100)
    axes.sharey(axes.figure.axes[0])
    axes.tick_params(labelleft=False)
    axes.set_xlabel("% of what the device could do (roofline)")


def _figure(panels: int) -> tuple[Any, list[Any]]:
    figure, axes = pyplot.subplots(1, panels, figsize=(WIDTH_IN, HEIGHT_IN), layout="constrained", squeeze=False)
    return figure, list(axes[0])


def _scale(speedups: list[Interval], set_scale: Any) -> None:
    """Plain figures on either scale."""
    lows, highs = [each.low for each in speedups if each.low > 0], [each.high for each in speedups]
    if lows and max(highs) / min(lows) > LOG_BEYOND:
        set_scale("log")
        axis = set_scale.__self__.yaxis if set_scale.__name__ == "set_yscale" else set_scale.__self__.xaxis
        axis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5)))
        axis.set_major_formatter(FormatStrFormatter("%gx"))
        axis.set_minor_formatter(NullFormatter())


if __name__ == "__main__":
    main()
