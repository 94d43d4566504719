"""The toolkit contract and its lookup. A toolkit is one module of `toolkits` that ends in `TOOLKIT = ...`."""

from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Literal, Protocol, cast

import toolkits
from toolkits.core.errors import ToolkitUnavailable
from toolkits.core.schema import CompileResult, Solution, Task

Purpose = Literal["run", "profile"]
"""`profile` builds carry debug information and only instructions that the profiler can execute."""


class Toolkit(Protocol):
    """How one language is built; how it runs is the judge's business."""

    name: str

    async def compile(self, task: Task, solution: Solution, builds: Path, purpose: Purpose = "run") -> CompileResult:
        """Build under `builds/`, or find the same content already built there."""
        ...

    def missing(self) -> str:
        """Empty when this machine can use the toolkit, else what to install."""
        ...


@cache
def get_toolkit(name: str) -> Toolkit:
    """Import `toolkits.<name>` and return its TOOLKIT."""
    if name not in available():
        raise ToolkitUnavailable(f"no toolkit {name!r}: choose one of {', '.join(available())}")
    return cast(Toolkit, import_module(f"toolkits.{name}").TOOLKIT)


def available() -> list[str]:
    """Names of all toolkits, without importing any."""
    return sorted(module.name for module in iter_modules(toolkits.__path__) if not module.ispkg)
