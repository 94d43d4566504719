"""Every known way to cheat, judged for real, twice in a row: the catch rate, and whether honest twins are left alone.

    python -m tests.cheats.corpus [--load] [NAME ...]

A case is a folder with a case.yaml; `cheat.*` must be refused as it says, `twin.*` must pass. `task/honest.*`, or the
task's own, lie beside the sources of every solution, and @CORPUS@ in a source stands for this folder. With --load
every core is kept busy meanwhile.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import anyio
import yaml
from rich.console import Console
from rich.table import Table

from bench.load import busy_cores
from mcp_server.folders import read_solution, read_task
from toolkits.core.errors import HarnessError
from toolkits.core.judge.client import Judge
from toolkits.core.judge.request import EvaluationRequest
from toolkits.core.schema import BenchmarkResult, CompileResult, Record, Solution, Status, Task
from toolkits.core.toolkit import get_toolkit

CORPUS = Path(__file__).parent
SHIPPED = CORPUS.parents[1] / "kernels"
TASK = "pick_softmax"
TOOLKITS = {".cpp": "cpp", ".py": "python"}
ROUNDS = 2


class Spec(Record):
    """What a case.yaml says."""

    does: str
    """The cheat in one sentence."""
    idea: str
    """The class of cheats it stands for."""
    source: str
    """Where the idea comes from."""
    expect: list[str]
    """Outcomes that count as caught: a status, a status and a cause, or `PASSED slower` where the lie had no effect."""
    task: str = TASK
    """The corpus's own task, or a shipped one."""
    workloads: list[str] = ["big"]
    mode: str = "full"
    returns: bool = False
    """Whether its Python functions return their outputs."""
    function: str = "run"
    plan: str = ""
    """The function that plans, of solutions for a task with that step."""
    twin: str = ""
    """What its honest twin does, in one sentence."""
    fresh_judge: bool = False
    """End the judge after it: where the cheat succeeds, the judge is no longer what it was."""
    needs_box: bool = False
    """Only the sandbox stops it: where none can be built, doctor says so and this cheat succeeds."""
    most_speedup: float = 0.0
    """Of a kernel that is fast and claims more: what the judge may at most report of it."""
    known_hole: str = ""
    """Why the judge does not catch it yet."""
    known_alarm: str = ""
    """Why the judge sometimes accuses its twin."""


@dataclass(frozen=True)
class Case:
    """One solution of the corpus: a cheat or a twin."""

    file: Path
    spec: Spec

    @property
    def name(self) -> str:
        return f"{self.file.parent.name}/{self.file.name}"

    @property
    def honest(self) -> bool:
        return self.file.stem == "twin"

    @property
    def expected(self) -> list[str]:
        return [Status.PASSED] if self.honest else self.spec.expect

    def task(self) -> Task:
        """The task with the workloads of the case; they belong to its identity, since the judge keeps tasks warm."""
        own = CORPUS / "task" / self.spec.task
        task = read_task(own if own.is_dir() else SHIPPED / self.spec.task)
        chosen = [workload for workload in task.workloads if workload.uuid in self.spec.workloads]
        key = " ".join([task.content_hash, *(workload.uuid for workload in chosen)])
        return task.model_copy(update={"workloads": chosen, "content_hash": key})

    def solution(self) -> Solution:
        """Its source, and what all of them may use."""
        shared = "honest.h" if self.file.suffix == ".cpp" else "honest.py"
        own = CORPUS / "task" / self.spec.task / shared
        files = [self.file, own if own.is_file() else CORPUS / "task" / shared]
        return Solution(
            task=self.spec.task,
            toolkit=TOOLKITS[self.file.suffix],
            entry_point=f"{self.file.name}::{self.spec.function}",
            plan_entry_point=f"{self.file.name}::{self.spec.plan}" if self.spec.plan else "",
            destination_passing_style=not (self.spec.returns and self.file.suffix == ".py"),
            sources={file.name: file.read_text(encoding="utf-8").replace("@CORPUS@", str(CORPUS)) for file in files},
        )


@dataclass(frozen=True)
class Outcome:
    """What the judge made of a case."""

    case: Case
    got: str
    """Status, and the cause or the verdict."""
    detail: str
    ms: float

    @property
    def ok(self) -> bool:
        return any(f"{self.got} ".startswith(f"{expected} ") for expected in self.case.expected)


def find_cases(names: Iterable[str] = ()) -> list[Case]:
    """All cheats and twins, or those of the named folders."""
    wanted = set(names)
    cases: list[Case] = []
    for folder in sorted(path.parent for path in CORPUS.glob("*/case.yaml")):
        if not wanted or folder.name in wanted:
            spec = Spec.model_validate(yaml.safe_load((folder / "case.yaml").read_text(encoding="utf-8")))
            cases += [Case(file, spec) for file in sorted(folder.iterdir()) if file.suffix in TOOLKITS]
    return cases


async def judged(judge: Judge, case: Case, builds: Path) -> Outcome:
    """Build a case and have it judged against the task's baseline."""
    task, candidate = case.task(), case.solution()
    baseline = read_solution(task.folder / "solutions" / task.baselines[0], task.name)
    built = [await get_toolkit(s.toolkit).compile(task, s, builds) for s in (candidate, baseline)]
    started = time.perf_counter()
    got, detail = await _judged(judge, case, _request(case, task, (candidate, baseline), built))
    if case.spec.fresh_judge:
        await judge.close()
    return Outcome(case, got, detail, (time.perf_counter() - started) * 1e3)


def _request(
    case: Case, task: Task, solutions: tuple[Solution, Solution], builds: list[CompileResult]
) -> EvaluationRequest:
    return EvaluationRequest.model_validate(
        {
            "task": task,
            "candidate": solutions[0],
            "candidate_build": builds[0],
            "baseline": solutions[1],
            "baseline_name": task.baselines[0],
            "baseline_build": builds[1],
            "mode": case.spec.mode,
        }
    )


async def _judged(judge: Judge, case: Case, request: EvaluationRequest) -> tuple[str, str]:
    if not request.candidate_build.ok:
        return Status.COMPILE_ERROR, request.candidate_build.log
    try:
        result = await judge.evaluate(request, lambda what, share: None)
    except HarnessError as error:
        return Status.HARNESS_ERROR, str(error)
    return _words(result, case.spec.most_speedup), result.detail


def _words(result: BenchmarkResult, most_speedup: float = 0.0) -> str:
    """The status with its cause; of a pass the verdict, and what made the clocks doubtful."""
    doubts = [measured.cause for measured in result.measurements if measured.cause]
    details = [result.verdict or "", *doubts[:1]] if result.status is Status.PASSED else [result.cause]
    if most_speedup and result.speedup and result.speedup.low > most_speedup:
        details.insert(0, "overstated")
    return " ".join(filter(None, (result.status, *details)))


async def run(console: Console, cases: list[Case]) -> list[Outcome]:
    """Judge all cases ROUNDS times, one line each."""
    outcomes: list[Outcome] = []
    judge = Judge()
    with tempfile.TemporaryDirectory() as builds:
        for _ in range(ROUNDS):
            table = Table(box=None, pad_edge=False)
            for column, width in (("case", 34), ("expected", 26), ("got", 27), ("ms", 5)):
                table.add_column(column, width=width, overflow="fold", justify="right" if column == "ms" else "left")
            for case in cases:
                outcomes.append(await judged(judge, case, Path(builds)))
                table.add_row(*_row(outcomes[-1]))
            console.print(table)
    await judge.close()
    return outcomes


def _row(outcome: Outcome) -> list[str]:
    case = outcome.case
    expected = " or ".join(case.expected).replace("INCORRECT_NUMERICAL", "WRONG").replace("RUNTIME_ERROR", "ERROR")
    got = outcome.got.replace("INCORRECT_NUMERICAL", "WRONG").replace("RUNTIME_ERROR", "ERROR")
    mark = "" if outcome.ok else " ACCUSED" if case.honest else " MISSED"
    return [case.name, expected, got + mark, f"{outcome.ms:.0f}"]


def summary(outcomes: list[Outcome]) -> list[str]:
    """The published figures, and the holes."""
    cheats = [outcome for outcome in outcomes if not outcome.case.honest]
    twins = [outcome for outcome in outcomes if outcome.case.honest]
    caught, accused = sum(o.ok for o in cheats), sum(not o.ok for o in twins)
    holes = {o.case.file.parent.name: o.case.spec.known_hole for o in cheats if not o.ok}
    alarms = {o.case.file.parent.name: o.case.spec.known_alarm for o in twins if not o.ok}
    return [
        f"caught {caught} of {len(cheats)} cheats ({caught / max(len(cheats), 1):.1%}), "
        f"accused {accused} of {len(twins)} honest twins, in {ROUNDS} rounds; "
        f"{sum(o.ms for o in outcomes) / max(len(outcomes), 1):.0f} ms a case",
        *(f"missed {name}: {why or 'new'}" for name, why in sorted(holes.items())),
        *(f"accused {name}: {why or 'new'}" for name, why in sorted(alarms.items())),
    ]


async def main(load: bool, names: list[str]) -> int:
    console = Console(width=100, highlight=False)
    async with busy_cores(load):
        outcomes = await run(console, find_cases(names))
    for line in summary(outcomes):
        console.print(line)
    return 0 if all(outcome.ok for outcome in outcomes) else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--load", action="store_true", help="keep every core busy meanwhile")
    parser.add_argument("names", nargs="*", help="folders of the corpus; none: all")
    arguments = parser.parse_args()
    sys.exit(anyio.run(main, arguments.load, arguments.names))
