"""make bench: every figure is a ratio or a difference against a peer measured in the same run."""

import tempfile
from pathlib import Path

import anyio
from rich.console import Console

from bench import compiling, evaluation, sandbox, startup


async def main() -> None:
    console = Console(width=100)
    with tempfile.TemporaryDirectory() as folder:
        await startup.measure(console, Path(folder))
        sandbox.measure(console)
        await compiling.measure(console, Path(folder))
        await evaluation.measure(console, Path(folder))


if __name__ == "__main__":
    anyio.run(main)
