"""A workspace with one small task, `scale`: y = a * x."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from mcp_server.callers import Callers
from mcp_server.lab import Lab
from mcp_server.ledger import Ledger
from mcp_server.workspace import Workspace

TASK = """
name: scale
title: Scale a vector
op_type: elementwise
description: y = a * x, elementwise.
axes:
  n: {type: var, description: length}
inputs:
  x: {shape: [n], dtype: float32, description: the vector}
  a: {shape: null, dtype: float32, description: the factor}
outputs:
  y: {shape: [n], dtype: float32}
checks:
  - {output: y, rule: allclose, tolerance: 1.0e-6, parameters: {rtol: 1.0e-5}}
distributions:
  normal: {description: standard normal}
correctness:
  - {n: 1}
  - {n: 1000}
baselines: [torch_out]
start: naive
call_timeout_s: 2.0
"""
WORKLOADS = [{"uuid": "small", "axes": {"n": 500_000}}, {"uuid": "large", "axes": {"n": 1_000_000}}]
REFERENCE = """
import torch


def make_inputs(axes, distribution, generator):
    return {"x": torch.randn(axes["n"], generator=generator), "a": 3.0}


def reference(inputs):
    return {"y": inputs["x"].double() * inputs["a"]}


def refresh(inputs, draw):
    draw.normal(inputs["x"])
"""
CPP = """#include <cstdio>
#include "task.h"
extern "C" void run(const float* x, float a, float* y, int64_t n) {
  BODY
}
"""
RIGHT = "for (int64_t i = 0; i < n; ++i) y[i] = a * x[i];"
TORCH_OUT = "import torch\n\n\ndef run(x, a, y):\n    torch.mul(x, a, out=y)\n"


def write_solution(folder: Path, body: str) -> str:
    """A C++ solution whose function has this body; its path."""
    folder.mkdir(parents=True)
    (folder / "solution.yaml").write_text("toolkit: cpp\nentry_point: kernel.cpp::run\n", encoding="utf-8")
    (folder / "kernel.cpp").write_text(CPP.replace("BODY", body), encoding="utf-8")
    return str(folder)


def descendants(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()
    except OSError:  # it has ended meanwhile
        return []
    return [one for child in children for one in (int(child), *descendants(int(child)))]


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8")
    except OSError:
        return ""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The root of a workspace that has the task."""
    write_task(tmp_path / "root" / "kernels" / "scale")
    return tmp_path / "root"


def write_task(task: Path) -> None:
    """The task with its two solutions, in a folder of that name."""
    write_solution(task / "solutions" / "naive", RIGHT)
    torch_out = task / "solutions" / "torch_out"
    torch_out.mkdir()
    (torch_out / "solution.yaml").write_text("toolkit: python\nentry_point: kernel.py::run\n", encoding="utf-8")
    (torch_out / "kernel.py").write_text(TORCH_OUT, encoding="utf-8")
    (task / "task.yaml").write_text(TASK.replace("name: scale", f"name: {task.name}"), encoding="utf-8")
    (task / "reference.py").write_text(REFERENCE, encoding="utf-8")
    (task / "workloads.jsonl").write_text("".join(json.dumps(line) + "\n" for line in WORKLOADS), encoding="utf-8")


@pytest.fixture
async def lab(root: Path) -> AsyncGenerator[Lab]:
    workspace = Workspace(root)
    lab = Lab(workspace, Callers(Ledger(workspace.database), admin_token="admin"))
    yield lab
    await lab.close()
