"""The rounds in which a solution is watched, with their inputs as files. Loads no torch, runs no solution."""

import re
from pathlib import Path

from toolkits.core.errors import HarnessError
from toolkits.core.profile_child import DumpRequest, last_words, run_child
from toolkits.core.schema import Record, Task, Workload

MOST_ROUNDS = 12
_AXIS = re.compile(r"\b([A-Za-z_]\w*)=(\d+)")


class RoundsRequest(Record):
    """Write the arguments of each round into its folder."""

    rounds: list[DumpRequest]


def rounds_of(task: Task) -> list[Workload]:
    """The correctness sizes under every distribution, the first distribution first; at most MOST_ROUNDS."""
    every = [(distribution, axes) for distribution in task.distributions for axes in task.correctness]
    return [round_of(axes, distribution) for distribution, axes in every[:MOST_ROUNDS]]


def round_of(axes: dict[str, int], distribution: str) -> Workload:
    name = " ".join([distribution, *(f"{axis}={size}" for axis, size in axes.items())])
    return Workload(uuid=name, axes=axes, distribution=distribution)


def named_round(task: Task, where: str) -> Workload | None:
    """The round or workload that a result names, if its inputs can be made anew."""
    known = next((workload for workload in task.workloads if workload.uuid == where.partition(",")[0]), None)
    if known:
        return known
    axes = {name: int(size) for name, size in _AXIS.findall(where) if name in task.var_axes()}
    distribution = next((name for name in task.distributions if re.search(rf"\b{re.escape(name)}\b", where)), "")
    return round_of(axes, distribution) if axes.keys() == set(task.var_axes()) else None


async def recorded(task: Task, rounds: list[Workload], folder: Path) -> list[Path]:
    """A folder of raw files for each round."""
    folders = [folder.resolve() / f"round{number}" for number in range(len(rounds))]
    requests: list[DumpRequest] = []
    for one, place in zip(rounds, folders, strict=True):
        place.mkdir(parents=True, exist_ok=True)
        requests.append(DumpRequest(task=task, workload=one, folder=place))
    done = await run_child("toolkits.core.judge.dumps", RoundsRequest(rounds=requests), folder)
    if done.returncode != 0:
        raise HarnessError(f"the inputs of the task's rounds could not be made: the child {last_words(done)}")
    return folders
