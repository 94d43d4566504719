"""A tiny real task, and a way to judge any source text against it."""

import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path

import pytest

from toolkits.core.judge.client import Judge
from toolkits.core.judge.request import EvaluationRequest
from toolkits.core.schema import BenchmarkResult, Solution, Task, Workload
from toolkits.core.toolkit import get_toolkit

REFERENCE = """
import torch

def make_inputs(axes, distribution, generator):
    x = torch.randn(axes["rows"], axes["columns"], generator=generator)
    return {"x": x * (100 if distribution == "large" else 1), "factor": 2.5}

def reference(inputs):
    return {"y": inputs["x"].double() * inputs["factor"]}

def refresh(inputs, draw):
    draw.normal(inputs["x"])
"""
BASELINE = "import torch\n\ndef scale(x, factor, y):\n    torch.mul(x, factor, out=y)\n"
CPP = """
#include "task.h"
extern "C" void scale(const float* x, float factor, float* y, int64_t rows, int64_t columns) {
  BODY
}
"""
LOOP = "for (int64_t i = 0; i < rows * columns; ++i) y[i] = x[i] * factor;"
SPEC = {
    "name": "scale",
    "title": "Scale",
    "op_type": "elementwise",
    "description": "y = factor * x",
    "axes": {"rows": {"type": "var"}, "columns": {"type": "var"}},
    "inputs": {"x": {"shape": ["rows", "columns"], "dtype": "float32"}, "factor": {"shape": None, "dtype": "float32"}},
    "outputs": {"y": {"shape": ["rows", "columns"], "dtype": "float32"}},
    "checks": [{"output": "y", "rule": "rel_l2", "tolerance": 1e-6}],
    "distributions": {"normal": {"description": "N(0,1)"}, "large": {"description": "N(0,1) times 100"}},
    "correctness": [{"rows": 3, "columns": 17}, {"rows": 64, "columns": 33}],
    "baselines": ["torch"],
    "start": "naive",
    "call_timeout_s": 2.0,
}
Evaluate = Callable[..., Awaitable[BenchmarkResult]]


@pytest.fixture
def task(tmp_path: Path) -> Task:
    """y = factor * x, with its reference on disk."""
    folder = tmp_path / "kernels" / "scale"
    folder.mkdir(parents=True)
    (folder / "reference.py").write_text(REFERENCE, encoding="utf-8")
    workloads = [Workload(uuid="wide", axes={"rows": 64, "columns": 4096})]
    spec = json.loads(json.dumps(SPEC))
    return Task.model_validate(spec | {"folder": folder, "content_hash": "scale-1", "workloads": workloads})


def cpp(body: str, **fields: object) -> Solution:
    """A C++ solution of the scale task with this function body."""
    sources = {"main.cpp": CPP.replace("BODY", body)}
    return Solution.model_validate(
        {"task": "scale", "toolkit": "cpp", "entry_point": "main.cpp::scale", "sources": sources, **fields}
    )


def python(text: str, **fields: object) -> Solution:
    """A Python solution of the scale task."""
    return Solution.model_validate(
        {"task": "scale", "toolkit": "python", "entry_point": "main.py::scale", "sources": {"main.py": text}, **fields}
    )


@pytest.fixture(scope="module")
async def judge() -> AsyncGenerator[Judge]:
    """One warm judge a test module, as a server has it."""
    judge = Judge()
    yield judge
    await judge.close()


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def evaluate(task: Task, judge: Judge, tmp_path: Path) -> Evaluate:
    """Build and judge a solution against torch."""

    async def run(candidate: Solution, mode: str = "check", **changes: object) -> BenchmarkResult:
        wanted, baseline = task.model_copy(update=changes), python(BASELINE)
        builds = [await get_toolkit(s.toolkit).compile(wanted, s, tmp_path / "builds") for s in (candidate, baseline)]
        assert all(build.ok for build in builds), builds[0].log
        request = EvaluationRequest.model_validate(
            {
                "task": wanted,
                "candidate": candidate,
                "candidate_build": builds[0],
                "baseline": baseline,
                "baseline_name": "torch",
                "baseline_build": builds[1],
                "mode": mode,
            }
        )
        return await judge.evaluate(request, lambda what, share: None)

    return run
