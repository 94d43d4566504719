"""Operations of a launch and its place under the roof, from Nsight Compute's metrics. Pure."""

from collections.abc import Iterator, Mapping

from toolkits.core.profilers.ncu_metrics import Launch
from toolkits.core.profilers.roofline import Peaks, position
from toolkits.core.schema import Roofline


def flops_of(launch: Launch, seconds: float | None) -> dict[str, float]:
    """Operations of a launch by their type: executed instructions a cycle, times the clock and the time."""
    clock = launch.value(("smsp__cycles_elapsed.avg.per_second", "sm__cycles_elapsed.avg.per_second"), "hz")
    if not clock or not seconds:
        return {}
    rates = {precision: _rate(launch, letter) for precision, letter in (("fp16", "h"), ("fp32", "f"), ("fp64", "d"))}
    return {precision: rate * clock * seconds for precision, rate in rates.items() if rate is not None}


def _rate(launch: Launch, letter: str) -> float | None:
    """Operations a cycle over the whole device."""
    stem = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum.per_cycle_elapsed"
    found = {op: launch.value((stem.format(f"{letter}{op}"),)) for op in ("add", "mul", "fma")}
    fused = launch.value((f"derived__smsp__sass_thread_inst_executed_op_{letter}fma_pred_on_x2",))
    if fused is None and found["fma"] is not None:
        fused = 2 * found["fma"]
    parts = [value for value in (found["add"], found["mul"], fused) if value is not None]
    # A part of one operation is no count of all: better none than a wrong one.
    width = 2 if letter == "h" else 1
    return sum(parts) * width if len(parts) == 3 else None


def roofline_of(
    launch: Launch, flops: Mapping[str, float], moved: float | None, micros: float | None
) -> Roofline | None:
    """Of the precision with most operations: each has a roof of its own."""
    wide = launch.value(("dram__bytes.sum.peak_sustained",))
    memory_clock = launch.value(("dram__cycles_elapsed.avg.per_second",), "hz")
    clock = launch.value(("sm__cycles_elapsed.avg.per_second",), "hz")
    if not flops or not wide or not memory_clock or not clock:
        return None
    peaks = Peaks(wide * memory_clock / 1e9, {name: value * clock / 1e9 for name, value in _peaks(launch)})
    precision = max(flops, key=lambda name: flops[name])
    return position(flops[precision], moved, micros, peaks, precision)


def _peaks(launch: Launch) -> Iterator[tuple[str, float]]:
    """Operations a cycle at most."""
    for precision, letter in (("fp16", "h"), ("fp32", "f"), ("fp64", "d")):
        name = f"sm__sass_thread_inst_executed_op_{letter}fma_pred_on"
        twice = launch.value((f"derived__{name}_x2",))
        once = launch.value((f"{name}.sum.peak_sustained",))
        if twice is not None or once is not None:
            yield precision, twice if twice is not None else 2 * (once or 0.0)
