"""A small real task on which whole runs take seconds, and the supervisor as a process."""

import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

TASK = """
name: scale
title: Scale a vector
op_type: elementwise
description: y = a * x
axes: {n: {type: var}}
inputs: {x: {shape: [n], dtype: float32}, a: {shape: null, dtype: float32}}
outputs: {y: {shape: [n], dtype: float32}}
checks: [{output: y, rule: rel_l2, tolerance: 1.0e-5}]
distributions: {normal: {description: standard normal}}
correctness: [{n: 1}, {n: 1000}]
baselines: [torch]
start: naive
variants: [loop, strides]
"""
REFERENCE = """
import torch


def make_inputs(axes, distribution, generator):
    return {"x": torch.randn(axes["n"], generator=generator), "a": 3.0}


def reference(inputs):
    return {"y": inputs["x"].double() * inputs["a"]}


def refresh(inputs, draw):
    draw.normal(inputs["x"])
"""
# A baseline that takes detours, so that there is a winner to be found.
SLOW_TORCH = """
def scale(x, a, y):
    z = x.double()
    for _ in range(8):
        z = z.sin().asin() if z.numel() < 0 else z + 0.0
    y.copy_(z * a)
"""
CPP = """#include "task.h"
extern "C" void scale(const float* x, float a, float* y, int64_t n) {
  BODY
}
"""
BODIES = {
    "naive": "for (int64_t i = 0; i < n; i++) { volatile double v = x[i]; y[i] = float(v * a); }",
    "loop": "for (int p = 0; p < PASSES; p++) for (int64_t i = 0; i < n; i++) ((volatile float*)y)[i] = a * x[i];",
    "strides": "for (int64_t s = 0; s < STRIDE; s++) for (int64_t i = s; i < n; i += STRIDE) y[i] = a * x[i];",
}
TUNABLES = {
    "loop": "tunables: {PASSES: {values: [1, 2, 3, 4, 5, 6, 7, 8], default: 8}}",
    "strides": "tunables: {STRIDE: {values: [1, 2, 4, 8, 16, 32, 64, 128], default: 64}}",
}
BUDGET = ("--evaluations", "26", "--minutes", "3")


def write_task(root: Path) -> None:
    """Give a workspace the task."""
    task = root / "kernels" / "scale"
    files = {"task.yaml": TASK, "reference.py": REFERENCE}
    files |= {"workloads.jsonl": "".join(json.dumps({"uuid": f"n{n}", "axes": {"n": n}}) + "\n" for n in (400000,))}
    files |= {"solutions/torch/solution.yaml": "toolkit: python\nentry_point: main.py::scale\n"}
    files |= {"solutions/torch/main.py": SLOW_TORCH}
    for name, body in BODIES.items():
        settings = f"toolkit: cpp\nentry_point: kernel.cpp::scale\n{TUNABLES.get(name, '')}\n"
        files |= {
            f"solutions/{name}/solution.yaml": settings,
            f"solutions/{name}/kernel.cpp": CPP.replace("BODY", body),
        }
    for name, text in files.items():
        (task / name).parent.mkdir(parents=True, exist_ok=True)
        (task / name).write_text(text, encoding="utf-8")


@contextmanager
def evolving(root: Path, *options: str) -> Generator["subprocess.Popen[str]"]:
    command = [sys.executable, "-P", "-m", "supervisor", "scale", *BUDGET, "--root", str(root), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=root) as process:
        try:
            yield process
        finally:
            process.kill()


def evolve(root: Path, *options: str) -> tuple[int, str, str]:
    with evolving(root, *options) as process:
        out, err = process.communicate()
        return process.returncode, out, err


def processes_of(root: Path) -> list[str]:
    """Command lines of living processes that mention the workspace."""
    found: list[str] = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = file.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if str(root) in text and file.parent.name != str(os.getpid()):
            found.append(text)
    return found
