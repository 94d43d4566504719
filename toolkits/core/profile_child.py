"""What profiling asks of child processes that load torch, and how they are run. Loads no torch itself."""

import os
import sys
from pathlib import Path

from toolkits.core import process
from toolkits.core.schema import Record, Solution, Task, Workload

CHILD_LIMIT_S = 120.0


class DumpRequest(Record):
    """Write the arguments of a workload as raw files into a folder."""

    task: Task
    workload: Workload
    folder: Path


class SampleRequest(Record):
    """Run a Python solution under the sampler; the answer is a `Samples` in a file."""

    task: Task
    workload: Workload
    solution: Solution
    artifact: Path
    answer: Path


class Operator(Record):
    """A torch operator and its own time in one call, in microseconds."""

    name: str
    calls: int
    self_us: float


class Samples(Record):
    """What the sampler saw."""

    call_us: float
    calls: int
    lines: dict[str, int]
    """`file:line` -> samples; the empty key is outside the solution's sources."""
    operators: list[Operator]


async def run_child(module: str, request: Record, folder: Path, limit_s: float = CHILD_LIMIT_S) -> process.Completed:
    """Run a module of this package on a request; the child sees nothing of this process's environment."""
    path = folder.resolve() / f"{module.rpartition('.')[2]}.json"
    path.write_text(request.model_dump_json(), encoding="utf-8")
    command = [sys.executable, "-P", "-m", module, str(path)]
    return await process.run(command, cwd=folder, timeout_s=limit_s, env=child_environment(folder))


def child_environment(folder: Path) -> dict[str, str]:
    """One thread, as in timing, and a home where nothing of the user lies."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8", "HOME": str(folder), "OMP_NUM_THREADS": "1"}


def last_words(done: process.Completed) -> str:
    """How a child ended, in one line."""
    words = [line.strip() for line in done.output.splitlines() if line.strip()]
    ending = "at the time limit" if done.returncode is None else f"with exit status {done.returncode}"
    return f"ended {ending}" + (f": {words[-1][:300]}" if words else "")
