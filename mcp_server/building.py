"""Builds as the lab uses them: what a full or read-only disk does to a build is told apart from what a source does."""

import shutil
from collections.abc import Awaitable, Mapping, Sequence
from pathlib import Path

from mcp_server.excerpts import clip, first_error
from toolkits.core.causes import Cause
from toolkits.core.errors import HarnessError, LabError
from toolkits.core.judge.postmortem import cause_of, with_remedy
from toolkits.core.schema import CompileResult, Solution, Task
from toolkits.core.toolkit import get_toolkit, looking_at

LEAST_FREE_BYTES = 1 << 20
"""A build that failed with less room than this says nothing of the solution."""


async def built(task: Task, solution: Solution, builds: Path) -> CompileResult:
    """What the toolkit makes of a solution. HarnessError: this machine could not build anything."""
    return await _finished(get_toolkit(solution.toolkit).compile(task, solution, builds), builds)


async def looked_at(sources: Mapping[str, str], targets: Sequence[str], builds: Path) -> CompileResult:
    """The same of files that are no solution of a task."""
    return await _finished(looking_at(sources).look(sources, targets, builds), builds)


async def _finished(building: Awaitable[CompileResult], builds: Path) -> CompileResult:
    try:
        build = await building
    except OSError as error:
        text = f"cannot build under {builds}: {error}"
        raise HarnessError(with_remedy(text), cause_of(text) or Cause.LAB_FAILED) from error
    if not build.ok and shutil.disk_usage(builds).free < LEAST_FREE_BYTES:
        raise HarnessError(f"no room under {builds} to build in; {Cause.DISK_FULL.hint}", Cause.DISK_FULL)
    return build


async def built_baseline(task: Task, solution: Solution, name: str, builds: Path) -> CompileResult:
    """The same of a baseline, without which nobody can be judged."""
    build = await built(task, solution, builds)
    if not build.ok:
        why = first_error(build.diagnostics, solution.sources) or clip(build.log, 500)
        raise LabError(f"baseline {name!r} does not build here, choose another by `baseline`: {why}")
    return build
