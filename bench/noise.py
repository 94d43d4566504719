"""How often a kernel is called different from itself, and how small a true difference is found.

    python -m bench.noise [--load]

Every comparison is a whole evaluation by the judge. Candidate and baseline are two builds of one source, in which WORK
is an exact number of dependent multiply-adds an element: a kernel is slower by a known amount and by nothing else.
Beside it stands what the plain way of bench/plain.py makes of the same two builds.
"""

import argparse
import math
import statistics
import tempfile
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import anyio
from rich.console import Console

from bench import plain
from bench.load import busy_cores
from toolkits.core.judge.client import Judge
from toolkits.core.judge.request import EvaluationRequest
from toolkits.core.schema import BenchmarkResult, CompileResult, Solution, Task, Verdict
from toolkits.core.toolkit import get_toolkit

COMPARISONS = 200
RUNS = 50
BASE_WORK = 1000
SLOWER_BY = (0.5, 1, 2, 3, 5)
"""Percent."""
REFERENCE = """
import torch

def make_inputs(axes, distribution, generator):
    return {"x": torch.randn(axes["n"], generator=generator)}

def reference(inputs):
    return {"y": inputs["x"].double() * 2}

def refresh(inputs, draw):
    draw.normal(inputs["x"])
"""
SOURCE = """
#include "task.h"
// copy COPY
extern "C" void spin(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    float v = x[i];
    for (int k = 0; k < WORK; ++k) v = v * 0.5f + x[i] * 0.5f;
    y[i] = v + x[i];
  }
}
"""


def _task(folder: Path) -> Task:
    (folder / "reference.py").write_text(REFERENCE, encoding="utf-8")
    return Task.model_validate(
        {
            "name": "spin",
            "title": "known work",
            "op_type": "elementwise",
            "description": "y = 2 x, slowly",
            "axes": {"n": {"type": "var"}},
            "inputs": {"x": {"shape": ["n"], "dtype": "float32"}},
            "outputs": {"y": {"shape": ["n"], "dtype": "float32"}},
            "checks": [{"output": "y", "rule": "rel_l2", "tolerance": 1e-5}],
            "distributions": {"normal": {"description": "standard normal"}},
            "correctness": [{"n": 7}],
            "baselines": ["itself"],
            "start": "itself",
            "workloads": [{"uuid": "n512", "axes": {"n": 512}}],
            "folder": folder,
            "content_hash": "spin",
        }
    )


def _solution(copy: str, work: int) -> Solution:
    sources = {"spin.cpp": SOURCE.replace("COPY", copy)}
    return Solution.model_validate(
        {
            "task": "spin",
            "toolkit": "cpp",
            "entry_point": "spin.cpp::spin",
            "sources": sources,
            "flags": [f"-DWORK={work}"],
        }
    )


class Comparison:
    """Evaluations of one kernel against its copy, with a known difference."""

    def __init__(self, folder: Path, judge: Judge) -> None:
        self._task, self._builds, self._judge = _task(folder), folder / "builds", judge
        self._baseline = _solution("baseline", BASE_WORK)

    async def run(self, percent: float, copy: str) -> BenchmarkResult:
        """One evaluation of a kernel that is slower by `percent`."""
        builds = await self._built(copy, percent)
        request = EvaluationRequest(
            task=self._task,
            candidate=_solution(copy, _work(percent)),
            candidate_build=builds[0],
            baseline=self._baseline,
            baseline_name="itself",
            baseline_build=builds[1],
        )
        return await self._judge.evaluate(request, lambda what, share: None)

    async def plain(self, copy: str) -> float:
        """The ratio of a kernel's plain median to its copy's."""
        builds = await self._built(copy, 0)
        ours, theirs = [await plain.median_ns(build.artifact) for build in builds if build.artifact]
        return theirs / ours

    async def _built(self, copy: str, percent: float) -> list[CompileResult]:
        toolkit = get_toolkit("cpp")
        both = (_solution(copy, _work(percent)), self._baseline)
        return [await toolkit.compile(self._task, solution, self._builds) for solution in both]


def _work(percent: float) -> int:
    return round(BASE_WORK * (1 + percent / 100))


async def measure(console: Console, folder: Path) -> None:
    judge = Judge()
    comparison = Comparison(folder, judge)
    started = time.monotonic()
    results = [await comparison.run(0, "copy") for _ in range(COMPARISONS)]
    console.print(f"a kernel against its copy, {COMPARISONS} comparisons: {_verdicts(results)}")
    console.print(f"  {(time.monotonic() - started) / COMPARISONS:.2f} s a comparison, {_spread(results)}")
    ratios = [await comparison.plain("copy") for _ in range(COMPARISONS)]
    console.print(f"  the plain way, median of {plain.CALLS} each, one after the other: {_beyond(ratios)}")
    found: dict[float, float] = {0.0: 0.0}
    for percent in SLOWER_BY:
        started = time.monotonic()
        slower = [await comparison.run(percent, "slower") for _ in range(RUNS)]
        found[percent] = sum(result.verdict is Verdict.SLOWER for result in slower) / RUNS
        seconds = (time.monotonic() - started) / RUNS
        console.print(
            f"{percent} % slower, {RUNS} comparisons of {seconds:.2f} s: called slower in {found[percent]:.0%}; "
            f"{_verdicts(slower)}"
        )
    console.print(f"found half of the time: a difference of {_half(found)}")
    await judge.close()


def _half(found: dict[float, float]) -> str:
    """Between the two measured differences of which one is found in less and one in at least half of all cases."""
    for (low, rarely), (high, often) in pairwise(sorted(found.items())):
        if rarely < 0.5 <= often:
            return f"{low + (high - low) * (0.5 - rarely) / (often - rarely):.1f} %"
    return f"more than {max(found)} %"


def _beyond(ratios: list[float]) -> str:
    """How many of the plain ratios would be called a difference, by how much one asks for."""
    shares = [f"{sum(abs(math.log(r)) > percent / 100 for r in ratios)} beyond {percent} %" for percent in (1, 2, 5)]
    return f"{', '.join(shares)}; ratios {_range(ratios)}"


def _range(ratios: list[float]) -> str:
    ratios = sorted(ratios)
    return f"{ratios[len(ratios) // 20]:.3f} to {ratios[-1 - len(ratios) // 20]:.3f} (5 to 95 %)"


def _verdicts(results: list[BenchmarkResult]) -> str:
    counts = Counter(str(result.verdict or result.status) for result in results)
    return ", ".join(f"{name} {count}" for name, count in counts.most_common())


def _spread(results: list[BenchmarkResult]) -> str:
    ratios = [result.speedup.value for result in results if result.speedup]
    pairs = statistics.median(m.pairs for result in results for m in result.measurements)
    return f"{pairs:.0f} pairs, ratios {_range(ratios)}"


async def _loaded(console: Console, folder: Path, load: bool) -> None:
    async with busy_cores(load):
        await measure(console, folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--load", action="store_true", help="keep both cores busy meanwhile")
    load = parser.parse_args().load
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(_loaded, Console(width=100), Path(folder), load)


if __name__ == "__main__":
    main()
