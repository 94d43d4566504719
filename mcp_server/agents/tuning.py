"""The tuner's program: measure, learn, propose, until the space or the budget ends. Runs in the role's process only.

It keeps nothing of its own: after a restart it knows what the history of its run says.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

from mcp_server.agents.client import WAIT_S, Lab, Outcome, Refused, emit
from mcp_server.agents.search import Point, Search
from mcp_server.charter import Charter
from mcp_server.reading import text_of, yaml_mapping, yaml_text
from mcp_server.schema import BenchmarkAnswer, HistoryAnswer, SolutionLine, TaskDescription, TaskList
from mcp_server.workspace import worktree_of
from toolkits.core.errors import InvalidInput
from toolkits.core.schema import Interval, Json, Record, Status

HISTORY_PAGE = 200
TRIES = 2
"""Of one configuration, when a result says nothing about it."""
NO_VERDICT = (Status.HARNESS_ERROR, Status.CANCELLED, Status.SKIPPED, Status.INVALID_REFERENCE)
"""Statuses that say nothing about the configuration."""
NOISE = "clock_mismatch"
"""Cause that a busy machine can bring about too; a tunable cannot."""


class Event(Record, extra="ignore"):
    """What the tuner reads of an evaluation in the history."""

    task: str
    variant: str = ""
    parameters: dict[str, int] = {}
    mode: str
    baseline: str = ""
    status: Status
    cause: str = ""
    partial: bool = False
    speedup: Interval | None = None


@dataclass
class Tuning:
    """One search: what it may vary, what it has seen, what it has used."""

    lab: Lab
    charter: Charter
    worktree: Path
    baseline: str
    """What every speedup in the study is measured against."""
    variants: dict[str, SolutionLine]
    search: Search
    read_to: int = 0
    used: int = 0
    best: float = 0.0

    async def run(self) -> Outcome:
        """Measure one configuration after the other until there is a reason to end."""
        await self.catch_up()
        emit("progress", text=f"{self.search.size} configurations, {self.search.measured} of them known")
        while not (self.charter.evaluations and self.used >= self.charter.evaluations):
            point = self.search.next()
            if point is None:
                return Outcome("done", f"all {self.search.size} configurations are measured; {self.summary}")
            if not await self.measure(point):
                return Outcome("budget", f"the lab grants no further evaluation; {self.summary}")
            await self.catch_up()
        return Outcome("budget", f"its {self.charter.evaluations} evaluations are used; {self.summary}")

    @property
    def summary(self) -> str:
        return f"best known speedup {self.best:.3f}" if self.best else "nothing passed"

    async def measure(self, point: Point) -> bool:
        """Benchmark a configuration and learn from it; False when the budget is spent."""
        folder = write_point(point, Path(self.variants[point.variant].path), self.worktree)
        for _ in range(TRIES):
            try:
                answer = await self.benchmark(folder)
            except Refused as refusal:
                if refusal.budget:
                    return False
                raise
            self.used += bool(answer.evaluation)
            if answer.status is not None and telling(answer.status, answer.cause):
                self.learn(point, answer.status, answer.speedup)
                return True
        # The lab could not tell more than once: leave it, and go on.
        self.learn(point, Status.SKIPPED, None)
        return True

    async def benchmark(self, folder: Path) -> BenchmarkAnswer:
        arguments: Json = {"task": self.charter.task, "path": str(folder), "mode": "full", "wait_s": WAIT_S}
        return BenchmarkAnswer.model_validate(await self.lab.finished("benchmark", arguments))

    async def catch_up(self) -> None:
        """Learn from every evaluation that the run has gained since the last look, whoever made it."""
        more = True
        while more:
            where: Json = {"run": self.charter.run, "after": self.read_to, "limit": HISTORY_PAGE}
            page = HistoryAnswer.model_validate(await self.lab.call("read_history", where | {"kinds": ["evaluation"]}))
            for line in page.events:
                self.hear(Event.model_validate(line.body))
            self.read_to, more = page.next_after, page.more and bool(page.events)

    def hear(self, event: Event) -> None:
        comparable = event.mode == "full" and not event.partial and event.baseline.split(" ")[0] == self.baseline
        failed = event.status is not Status.PASSED and telling(event.status, event.cause)
        if event.task == self.charter.task and (failed or (comparable and event.status is Status.PASSED)):
            self.learn(Point(variant=event.variant, parameters=event.parameters), event.status, event.speedup)

    def learn(self, point: Point, status: Status, speedup: Interval | None) -> None:
        value = speedup.value if status is Status.PASSED and speedup else None
        if self.search.tell(point, value):
            self.best = max(self.best, value or 0.0)
            emit("progress", text=f"{point}: {f'{value:.3f}' if value else status} ({self.summary})")


async def work(lab: Lab, charter: Charter, folder: Path) -> Outcome:
    """Ask what there is to vary and what it is compared with, then search."""
    about = TaskDescription.model_validate(await lab.call("describe_task", {"task": charter.task}))
    tasks = TaskList.model_validate(await lab.call("list_tasks", {}))
    baseline = next(line.baselines[0] for line in tasks.tasks if line.name == charter.task)
    variants = assigned(about, charter)
    space = {name: narrowed(name, line, charter.space.get(name, {})) for name, line in variants.items()}
    first = [starting_point(name, line, charter.start.get(name, {}), space[name]) for name, line in variants.items()]
    worktree = worktree_of(folder)
    # A later attempt starts with another seed: redrawing the first one's random trials would tell it nothing.
    search = Search(space, charter.seed + len(taken(worktree)), first)
    return await Tuning(lab, charter, worktree, baseline, variants, search).run()


def telling(status: Status, cause: str) -> bool:
    """Whether a result says something about the configuration, and not only about the machine."""
    return status not in NO_VERDICT and cause != NOISE


def assigned(about: TaskDescription, charter: Charter) -> dict[str, SolutionLine]:
    """The variants that the charter names; without any, all that declare tunables."""
    lines = {line.name: line for line in about.solutions}
    unknown = [name for name in charter.variants if name not in lines]
    if unknown:
        raise InvalidInput(f"task {about.name} has no solution {', '.join(unknown)}; it has {', '.join(lines)}")
    chosen = charter.variants or [name for name, line in lines.items() if line.tunables]
    if not chosen:
        raise InvalidInput(f"no solution of task {about.name} declares tunables, so there is nothing to search")
    return {name: lines[name] for name in chosen}


def narrowed(variant: str, line: SolutionLine, wanted: dict[str, list[int]]) -> dict[str, list[int]]:
    """Declared values, or those of the charter where it names them."""
    for name, values in wanted.items():
        declared = line.tunables[name].values if name in line.tunables else []
        if not values or not set(values) <= set(declared):
            raise InvalidInput(f"space.{variant}.{name} is {values}; declared values are {declared}")
    return {name: sorted(set(wanted.get(name, tunable.values))) for name, tunable in line.tunables.items()}


def starting_point(variant: str, line: SolutionLine, wanted: dict[str, int], space: dict[str, list[int]]) -> Point:
    """What the charter says, the defaults elsewhere; a default outside the space gives way to its nearest value."""
    defaults = {
        name: min(space[name], key=lambda value, tunable=tunable: abs(value - tunable.default))
        for name, tunable in line.tunables.items()
    }
    if unknown := wanted.keys() - defaults.keys():
        raise InvalidInput(f"start.{variant} names {', '.join(sorted(unknown))}, which {variant} does not declare")
    return Point(variant=variant, parameters=defaults | wanted)


def write_point(point: Point, source: Path, worktree: Path) -> Path:
    """A copy of the variant with the point's parameters, in the next free numbered folder."""
    folder = worktree / f"{point.variant}-{max(taken(worktree), default=0) + 1}"
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns("__pycache__"))
    file = folder / "solution.yaml"
    solution = yaml_mapping(text_of(file), str(file)) | {"parameters": point.parameters}
    file.write_text(yaml_text(solution), encoding="utf-8")
    return folder


def taken(worktree: Path) -> list[int]:
    """Numbers of the folders that earlier measurements, also of an earlier attempt, have left."""
    endings = [folder.name.rpartition("-")[2] for folder in worktree.iterdir()]
    return [int(ending) for ending in endings if ending.isdigit()]
