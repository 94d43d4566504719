"""The toolkit contract and its lookup. A toolkit is one module of `toolkits` that ends in `TOOLKIT = ...`."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path, PurePosixPath
from pkgutil import iter_modules
from typing import Literal, Protocol, cast

import toolkits
from toolkits.core.errors import InvalidInput, ToolkitUnavailable
from toolkits.core.schema import CompileResult, Solution, Task

Purpose = Literal["run", "profile", "debug", "sanitize", "races"]
"""`profile` builds carry debug information and only instructions that the profiler can execute; `debug` builds keep
variables for a debugger; `sanitize` and `races` builds watch themselves."""


class Toolkit(Protocol):
    """How one language is built; how it runs is the judge's business."""

    name: str

    async def compile(self, task: Task, solution: Solution, builds: Path, purpose: Purpose = "run") -> CompileResult:
        """Build under `builds/`, or find the same content already built there."""
        ...

    def missing(self) -> str:
        """Empty when this machine can use the toolkit, else what to install."""
        ...


class Looks(Protocol):
    """A toolkit that also reports on files that are no solution of a task."""

    async def look(self, sources: Mapping[str, str], targets: Sequence[str], builds: Path) -> CompileResult:
        """Compile under `builds/` for every target, or find the same content already looked at."""
        ...


LOOKS_AT = {".cu": "cuda"}
"""Suffix of a file -> toolkit that can report on it alone."""


def looking_at(names: Iterable[str]) -> Looks:
    """The toolkit for files without a task, by their names."""
    found = {LOOKS_AT[suffix] for name in names if (suffix := PurePosixPath(name).suffix) in LOOKS_AT}
    if len(found) != 1:
        raise InvalidInput(f"without a task only kernels of one kind are compiled: give {' or '.join(LOOKS_AT)} files")
    return cast(Looks, get_toolkit(found.pop()))


@cache
def get_toolkit(name: str) -> Toolkit:
    """Import `toolkits.<name>` and return its TOOLKIT."""
    if name not in available():
        raise ToolkitUnavailable(f"no toolkit {name!r}: choose one of {', '.join(available())}")
    return cast(Toolkit, import_module(f"toolkits.{name}").TOOLKIT)


def available() -> list[str]:
    """Names of all toolkits, without importing any."""
    return sorted(module.name for module in iter_modules(toolkits.__path__) if not module.ispkg)
