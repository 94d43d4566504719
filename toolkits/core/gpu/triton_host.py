"""What a worker loads in place of a Triton solution: Triton's interpreter, then the solution, whose functions it shows.

A kernel that leaves its tensors is told where; should the process die all the same, its lines are in the output.
Lies beside the solution's files, and knows neither a judge nor a task.
"""

import faulthandler
import importlib.util
import os
import sys
from pathlib import Path

ENTRY = "main.py"
"""Replaced by the solution's entry file."""
CHECK_BOUNDS = True
"""Replaced where a kernel makes pointers of numbers."""

os.environ["TRITON_INTERPRET"] = "1"
faulthandler.enable()
import triton_bfloat16  # noqa: E402  # pyright: ignore[reportMissingImports]
import triton_bounds  # noqa: E402  # pyright: ignore[reportMissingImports]
import triton_stub  # noqa: E402  # pyright: ignore[reportMissingImports]  it lies beside this file where this file runs

triton_stub.installed([("cuda", 90, 32)])  # pyright: ignore[reportUnknownMemberType]
triton_bfloat16.install()  # pyright: ignore[reportUnknownMemberType]
if CHECK_BOUNDS:
    triton_bounds.install()  # pyright: ignore[reportUnknownMemberType]


def __getattr__(name: str) -> object:
    return getattr(_solution, name)


def _loaded() -> object:
    spec = importlib.util.spec_from_file_location("triton_solution", Path(__file__).with_name(ENTRY))
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["triton_solution"] = module
    spec.loader.exec_module(module)
    return module


_solution = _loaded()
