"""What profiling asks of child processes that load torch, and how they are run. Loads no torch itself."""

import os
import sys
from pathlib import Path
from shutil import rmtree

from pydantic import FiniteFloat

import toolkits
from toolkits.core import process
from toolkits.core.errors import HarnessError
from toolkits.core.judge.confine import surroundings
from toolkits.core.profile_box import Room
from toolkits.core.schema import Record, Solution, Task, Workload

CHILD_LIMIT_S = 120.0


class DumpRequest(Record):
    """Write the arguments of a workload as raw files into a folder."""

    task: Task
    workload: Workload
    folder: Path


class SampleRequest(Record):
    """Run a Python solution under the sampler on dumped arguments; the answer is a `Samples` in a file."""

    task: Task
    workload: Workload
    solution: Solution
    artifact: Path
    arguments: Path
    answer: Path


class Operator(Record):
    """A torch operator and its own time in one call, in microseconds."""

    name: str
    calls: int
    self_us: FiniteFloat


class Samples(Record):
    """What the sampler saw."""

    call_us: FiniteFloat
    calls: int
    lines: dict[str, int]
    """`file:line` -> samples; the empty key is outside the solution's sources."""
    operators: list[Operator]


async def run_child(
    module: str, request: Record, folder: Path, limit_s: float = CHILD_LIMIT_S, room: Room | None = None
) -> process.Completed:
    """Run a module of this package on a request; the child sees nothing of this process's environment.

    Without a room it runs the task's own code only, with all the rights of this process.
    """
    path = folder.resolve() / f"{module.rpartition('.')[2]}.json"
    path.write_text(request.model_dump_json(), encoding="utf-8")
    arguments, environment = ["-P", "-m", module, str(path)], child_environment(folder)
    if not room:
        return await process.run([sys.executable, *arguments], cwd=folder, timeout_s=limit_s, env=environment)
    package = Path(toolkits.__path__[0]).resolve()
    # Python finds a package by a listing, and in a box the folders around what is visible cannot be listed.
    (room.outside / package.name).symlink_to(package)
    reads = [path, package, *map(Path, surroundings()["visible"])]
    command = [str(python_inside()), *arguments]
    return await room.with_reads(*reads).run(command, environment | {"PYTHONPATH": str(room.inside)}, limit_s)


def python_inside() -> Path:
    """This interpreter by the name under which its folder is seen in a box, where no link on the way exists."""
    python, prefix = Path(sys.executable), Path(sys.prefix)
    return prefix.resolve() / python.relative_to(prefix) if python.is_relative_to(prefix) else python.resolve()


async def dump_arguments(task: Task, workload: Workload, folder: Path) -> Path:
    """A new folder with the arguments of a workload as raw files."""
    arguments = folder.resolve() / "arguments"
    arguments.mkdir(parents=True, exist_ok=True)
    request = DumpRequest(task=task, workload=workload, folder=arguments)
    done = await run_child("toolkits.core.judge.dump", request, folder)
    if done.returncode != 0:
        rmtree(arguments)
        raise HarnessError(f"the inputs of workload {workload.uuid} could not be made: the child {last_words(done)}")
    return arguments


def child_environment(folder: Path) -> dict[str, str]:
    """One thread, as in timing, and a home where nothing of the user lies."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", "HOME": str(folder), "OMP_NUM_THREADS": "1"}


def last_words(done: process.Completed) -> str:
    """How a child ended, in one line."""
    words = [line.strip() for line in done.output.splitlines() if line.strip()]
    ending = "at the time limit" if done.returncode is None else f"with exit status {done.returncode}"
    return f"ended {ending}" + (f": {words[-1][:300]}" if words else "")
