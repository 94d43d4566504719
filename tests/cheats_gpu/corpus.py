"""Every known way to cheat that needs a GPU, judged there, or on the stand-in for a driver where there is none.

    python -m tests.cheats_gpu.corpus [NAME ...]

A case is a folder with a case.yaml; `cheat.cu` must be refused as it says, `twin.cu` must pass. `task/lab.h` lies
beside the sources of every solution.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import anyio
import yaml
from rich.console import Console

from bench.gpu_check import standing
from mcp_server.folders import read_solution, read_task
from toolkits.core.errors import HarnessError
from toolkits.core.gpu import device_access
from toolkits.core.judge.client import Judge
from toolkits.core.judge.request import EvaluationRequest
from toolkits.core.schema import BenchmarkResult, CompileResult, Record, Solution, Status, Task
from toolkits.core.signature import device_header
from toolkits.core.toolkit import get_toolkit

CORPUS = Path(__file__).parent
TASK = CORPUS / "task" / "row_softmax"
SHARED = CORPUS / "task" / "lab.h"


class Spec(Record):
    """What a case.yaml says."""

    does: str
    """The cheat in one sentence."""
    idea: str
    """The class of cheats it stands for."""
    source: str
    """Where the idea comes from."""
    expect: list[str]
    """Outcomes that count as caught: a status, or a status and a cause or verdict."""
    twin: str = ""
    """What its honest twin does, in one sentence."""


@dataclass(frozen=True)
class Case:
    """One solution of the corpus: a cheat or a twin."""

    file: Path
    spec: Spec

    @property
    def name(self) -> str:
        return f"{self.file.parent.name}/{self.file.stem}"

    @property
    def honest(self) -> bool:
        return self.file.stem == "twin"

    @property
    def expected(self) -> list[str]:
        return [Status.PASSED] if self.honest else self.spec.expect

    def solution(self) -> Solution:
        return _with_shared(
            Solution(
                task=TASK.name,
                toolkit="cuda",
                entry_point=f"{self.file.name}::run",
                sources={self.file.name: self.file.read_text(encoding="utf-8")},
            )
        )


@dataclass(frozen=True)
class Outcome:
    """What the judge made of a case."""

    case: Case
    got: str
    """Status, and the cause or the verdict."""
    detail: str
    seconds: float

    @property
    def ok(self) -> bool:
        return any(f"{self.got} ".startswith(f"{expected} ") for expected in self.case.expected)


def find_cases(names: Iterable[str] = ()) -> list[Case]:
    """All cheats and twins, or those of the named folders."""
    wanted, found = set(names), list[Case]()
    for folder in sorted(path.parent for path in CORPUS.glob("*/case.yaml")):
        if not wanted or folder.name in wanted:
            spec = Spec.model_validate(yaml.safe_load((folder / "case.yaml").read_text(encoding="utf-8")))
            found += [Case(file, spec) for file in sorted(folder.glob("*.cu"))]
    return found


def _with_shared(solution: Solution) -> Solution:
    sources = {**solution.sources, SHARED.name: SHARED.read_text(encoding="utf-8")}
    return solution.model_copy(update={"sources": sources})


class Corpus:
    """Builds and judges cases on the first CUDA device, or on the stand-in."""

    def __init__(self, judge: Judge, builds: Path, driver: Path | None) -> None:
        self.judge, self._builds, self._driver = judge, builds, driver
        self.task: Task = read_task(TASK)
        self._baseline: tuple[Solution, CompileResult] | None = None

    async def judged(self, case: Case) -> Outcome:
        """One case, from its sources to its outcome."""
        started = time.perf_counter()
        candidate = case.solution()
        build = await self.built(candidate)
        if not build.ok:
            return Outcome(case, Status.COMPILE_ERROR, build.log, time.perf_counter() - started)
        baseline, baseline_build = await self._against()
        request = EvaluationRequest(
            task=self.task,
            candidate=candidate,
            candidate_build=build,
            baseline=baseline,
            baseline_name="plain",
            baseline_build=baseline_build,
        )
        try:
            result = await self.judge.evaluate(request, lambda what, share: None)
        except HarnessError as error:
            return Outcome(case, Status.HARNESS_ERROR, str(error), time.perf_counter() - started)
        return Outcome(case, _words(result), result.detail, time.perf_counter() - started)

    async def built(self, solution: Solution) -> CompileResult:
        """By the toolkit; for the stand-in by the machine's C++ compiler."""
        if not self._driver:
            return await get_toolkit("cuda").compile(self.task, solution, self._builds)
        folder = self._builds / solution.id
        sources = {"task.h": device_header(self.task, "cuda", solution.entry_function), **solution.sources}
        library = folder / "solution.so"
        if not library.is_file():
            library = await standing.built_solution(folder, self._driver, sources, solution.entry_file)
        return CompileResult(ok=True, solution=solution.id, toolkit="cuda", artifact=library, device="cuda:0")

    async def _against(self) -> tuple[Solution, CompileResult]:
        if self._baseline is None:
            plain = _with_shared(read_solution(TASK / "solutions" / "plain", TASK.name))
            self._baseline = plain, await self.built(plain)
        return self._baseline


def _words(result: BenchmarkResult) -> str:
    """The status with its cause, or its verdict."""
    more = (result.verdict or "") if result.status is Status.PASSED else result.cause
    return f"{result.status} {more}".strip()


async def main(names: list[str]) -> int:
    """Every case once, a line each."""
    console, judge, outcomes = Console(width=110, highlight=False), Judge(), list[Outcome]()
    with tempfile.TemporaryDirectory() as folder:
        builds = Path(folder)
        driver = None if (await device_access.found("cuda")).gpus else await standing.built_driver(builds)
        with standing.in_use(driver) if driver else nullcontext():
            corpus = Corpus(judge, builds, driver)
            for case in find_cases(names):
                outcomes.append(await corpus.judged(case))
                console.print(_line(outcomes[-1]))
            await judge.close()
    return 0 if all(outcome.ok for outcome in outcomes) else 1


def _line(outcome: Outcome) -> str:
    mark = "" if outcome.ok else " ACCUSED" if outcome.case.honest else " MISSED"
    detail = f" {outcome.detail}"[:200] if outcome.detail else ""
    return f"{outcome.case.name:28} {outcome.seconds:5.1f} s  {outcome.got}{mark}{detail}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="folders of the corpus; none: all")
    sys.exit(anyio.run(main, parser.parse_args().names))
