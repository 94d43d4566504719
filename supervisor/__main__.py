"""The evolve verb: opens or resumes a run, lets the loop work, and leaves the reports. `python -P -m supervisor`."""

import asyncio
import os
import signal
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Annotated

import anyio
import typer
from pydantic import ValidationError
from rich.console import Console

from mcp_server.schema import HistoryLine, RunAnswer, TaskDescription, TaskLine
from supervisor import files, loop
from supervisor.client import Lab
from supervisor.display import Display, LiveDisplay, PlainDisplay
from supervisor.report import history, learnings, table
from supervisor.report.summary import Summary, evidence, summarize
from supervisor.run import Run
from supervisor.schema import RunConfig, RunState, TaskFacts
from supervisor.serving import started_lab
from supervisor.team import as_yaml
from toolkits.core.errors import InvalidInput, LabError

REPORT_AFTER = {"generation_ended", "search_ended", "winner", "revoked"}
"""Rows after which the documents of the run folder are written anew."""


def evolve(
    task: str,
    run: str = "",
    agent: str = "tuner",
    evaluations: int = 60,
    minutes: float = 5.0,
    usd: float = 0.0,
    root: Path | None = None,
    json: bool = False,
    console: Console | None = None,
    tokens: int = 0,
) -> int:
    """Evolve a kernel of `task`; the same call resumes a run that was interrupted. Gives the exit status."""
    try:
        config = RunConfig(task=task, agent=agent, evaluations=evaluations, minutes=minutes, usd=usd, tokens=tokens)
    except ValidationError as error:
        problem = error.errors()[0]
        raise InvalidInput(f"--{problem['loc'][0]}: {problem['msg'].lower()}") from error
    console = console or Console()
    where = root or Path(os.environ.get("KERNEL_LAB_ROOT") or ".kernel-lab")
    return anyio.run(_evolve, config, run, where.absolute(), _display(console, json), console, json)


async def _evolve(config: RunConfig, name: str, root: Path, display: Display, console: Console, json: bool) -> int:
    with _signals() as stop, stop.block():
        async with started_lab(root) as lab:
            summary = await _session(lab, config, name, display, stop)
            if json:
                console.out(summary.model_dump_json(indent=2), highlight=False)
            else:
                table.show(summary, console)
    return 128 + stop.signal if stop.signal else 0


async def _session(lab: Lab, config: RunConfig, name: str, display: Display, stop: "_Stop") -> Summary:
    facts = await _facts(lab, config.task)
    opened = await _open(lab, config, name)
    folder = Path(opened.folder)
    config_file = folder / "run.yaml"
    if not config_file.exists():
        files.write(config_file, as_yaml(config))
    with display:
        run = Run(lab, opened.run, config, facts, folder, opened.spent_usd, _Watch(display))
        await run.load()
        if not opened.finished:
            await _work(run, stop)
    return await _summary(run, run.state)


async def _work(run: Run, stop: "_Stop") -> None:
    devices = (await run.lab.devices()).devices
    await run.decide("session_started", {"device": devices[0].description if devices else "an unknown device"})
    with stop.block():
        await loop.evolve(run)
        final = await _summary(run, run.state.model_copy(update={"finished": True}))
        _documents(run, final, run.state)
        await run.decide("finished", final.model_dump(mode="json", include={"winner", "evaluations", "minutes", "usd"}))
    if stop.signal:
        await loop.stop_roles(run)
        await run.decide("interrupted", {"elapsed_s": round(run.elapsed_s, 1)})
        _documents(run, _figures(run, run.state), run.state)


# --- opening --------------------------------------------------------------------------------------------------------


async def _facts(lab: Lab, task: str) -> TaskFacts:
    about = await lab.describe_task(task)
    line = next(line for line in (await lab.list_tasks()).tasks if line.name == task)
    solutions = {solution.name: solution for solution in about.solutions}
    return TaskFacts(
        name=task,
        start=line.start,
        start_path=solutions[line.start].path,
        baseline=line.baselines[0],
        variants={name: solutions[name].tunables for name in _variants(about, line)},
    )


def _variants(about: TaskDescription, line: TaskLine) -> list[str]:
    """What a team may be set on: the declared variants, else whatever can be tuned, else the start as it is."""
    tunable = [s.name for s in about.solutions if s.tunables and s.name not in line.baselines]
    return line.variants or tunable or [line.start]


async def _open(lab: Lab, config: RunConfig, name: str) -> RunAnswer:
    """The run of that name; without a name the task's own, numbered on when it is finished."""
    defaults = (config.task if n == 1 else f"{config.task}-{n}" for n in count(1))
    for candidate in [name] if name else defaults:
        opened = await lab.open_run(candidate, config.task, config)
        if not opened.created and (name or not opened.finished):
            _same(config, RunConfig.model_validate(opened.config), opened.run)
        if name or not opened.finished:
            return opened
    raise AssertionError("there is always a next number")


def _same(asked: RunConfig, frozen: RunConfig, run: str) -> None:
    for field_name in RunConfig.model_fields:
        new, old = getattr(asked, field_name), getattr(frozen, field_name)
        if new != old:
            raise InvalidInput(
                f"run {run!r} was created with {field_name}={old}, this command says {field_name}={new}: "
                f"repeat the command with {field_name}={old} to resume it, or start a new run with --run NAME"
            )


# --- reports --------------------------------------------------------------------------------------------------------


@dataclass
class _Watch:
    """Passes what is new to the terminal, and keeps the documents of the run folder up to date."""

    display: Display

    def __call__(self, run: Run, new: Sequence[HistoryLine]) -> None:
        self.display.watch(run, new)
        if any(row.kind in REPORT_AFTER for row in new):
            _documents(run, _figures(run, run.state), run.state)


async def _summary(run: Run, state: RunState) -> Summary:
    """With the records of the start and of the re-measures, which only the ledger has in full."""
    answers = [await run.lab.evaluation(id) for id in evidence(state)]
    spent = (state.active_s if state.finished and run.state.finished else run.elapsed_s, run.usd)
    names = (run.facts.start, run.facts.baseline)
    return summarize(run.name, run.config, state, names, run.folder, answers, spent)


def _figures(run: Run, state: RunState) -> Summary:
    names = (run.facts.start, run.facts.baseline)
    return summarize(run.name, run.config, state, names, run.folder, (), (run.elapsed_s, run.usd))


def _documents(run: Run, summary: Summary, state: RunState) -> None:
    files.write(run.folder / "LEARNINGS.md", learnings.render(summary, state, run.facts))
    files.write(run.folder / "HISTORY.md", history.render(summary, state))


def _display(console: Console, json: bool) -> Display:
    if json:
        return Display()
    return LiveDisplay(console) if console.is_terminal else PlainDisplay(console)


# --- signals and the command line -----------------------------------------------------------------------------------


@dataclass
class _Stop:
    """A signal ends the innermost block, so that what is around it can still clean up; a second one ends that too."""

    signal: int = 0
    scopes: list[anyio.CancelScope] = field(default_factory=list[anyio.CancelScope])

    def __call__(self, received: int) -> None:
        self.signal = received
        self.scopes[-1].cancel()

    @contextmanager
    def block(self) -> Generator[None]:
        with anyio.CancelScope() as scope:
            self.scopes.append(scope)
            try:
                yield
            finally:
                self.scopes.pop()


@contextmanager
def _signals() -> Generator[_Stop]:
    """SIGINT and SIGTERM go to the stop."""
    stop = _Stop()
    events = asyncio.get_running_loop()
    for each in (signal.SIGINT, signal.SIGTERM):
        events.add_signal_handler(each, stop, each)
    try:
        yield stop
    finally:
        for each in (signal.SIGINT, signal.SIGTERM):
            events.remove_signal_handler(each)


def main() -> None:
    """Entry point of `python -P -m supervisor`."""
    typer.run(_command)


def _command(
    task: str,
    run: Annotated[str, typer.Option(help="Name of the run; default: the task's name.")] = "",
    agent: Annotated[str, typer.Option(help="Who fills the roles.")] = "tuner",
    evaluations: Annotated[int, typer.Option(help="All evaluations, the final re-measures included.")] = 60,
    minutes: Annotated[float, typer.Option(help="Active time.")] = 5.0,
    usd: Annotated[float, typer.Option(help="Spend on models.")] = 0.0,
    tokens: Annotated[int, typer.Option(help="Tokens of models; 0: no cap.")] = 0,
    root: Annotated[Path | None, typer.Option(help="Workspace; default .kernel-lab here.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Evolve a kernel of TASK with a team that is rebuilt when it stalls."""
    try:
        status = evolve(task, run, agent, evaluations, minutes, usd, root, json, tokens=tokens)
    except LabError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from error
    raise typer.Exit(status)


if __name__ == "__main__":
    main()
