"""The python toolkit: what is wrong with a source is told without running it."""

from pathlib import Path

import pytest

from toolkits.core.errors import InvalidInput
from toolkits.core.schema import Axis, Check, Distribution, Solution, Task, TensorSpec, Workload
from toolkits.python import TOOLKIT

pytestmark = pytest.mark.anyio

SCALE = "import torch\n\n\ndef run(x, y):\n    torch.mul(x, 2, out=y)\n"


def double_task() -> Task:
    return Task(
        name="double",
        title="Double",
        op_type="elementwise",
        description="y = 2 x",
        axes={"rows": Axis(type="var")},
        inputs={"x": TensorSpec(shape=["rows"], dtype="float32")},
        outputs={"y": TensorSpec(shape=["rows"], dtype="float32")},
        checks=[Check(output="y", rule="allclose", tolerance=1e-6)],
        distributions={"normal": Distribution(description="standard normal")},
        correctness=[{"rows": 2}],
        baselines=["torch"],
        start="torch",
        workloads=[Workload(uuid="rows-8", axes={"rows": 8})],
        folder=Path("double"),
        content_hash="0",
    )


def solution(source: str = SCALE, **changes: object) -> Solution:
    fields = {"task": "double", "toolkit": "python", "entry_point": "main.py::run", "sources": {"main.py": source}}
    return Solution.model_validate(fields | changes)


async def test_sources_are_kept_by_content(tmp_path: Path) -> None:
    sources = {"main.py": SCALE, "parts/helper.py": "X = 1\n"}
    first = await TOOLKIT.compile(double_task(), solution(sources=sources), tmp_path)
    assert first.ok and first.artifact
    assert (first.artifact / "parts/helper.py").read_text() == "X = 1\n"
    again = await TOOLKIT.compile(double_task(), solution(sources=sources), tmp_path)
    assert again.cached and again.artifact == first.artifact


async def test_a_syntax_error_has_its_place(tmp_path: Path) -> None:
    result = await TOOLKIT.compile(double_task(), solution("def run(x, y):\n    y[:] = (2 * x\n"), tmp_path)
    assert not result.ok and result.artifact is None
    first = result.diagnostics[0]
    assert (first.file, first.line, first.column) == ("main.py", 2, 12)
    assert "never closed" in first.message


async def test_a_syntax_warning_is_kept_and_is_no_error(tmp_path: Path) -> None:
    result = await TOOLKIT.compile(double_task(), solution(SCALE + "    assert x is 2\n"), tmp_path)
    assert result.ok
    assert [(d.severity, d.line) for d in result.diagnostics] == [("warning", 6)]


@pytest.mark.parametrize("source", ["", "def ran(x, y): ...\n", "def outer():\n    def run(x, y): ...\n"])
async def test_a_missing_entry_function_is_told_with_the_signature(tmp_path: Path, source: str) -> None:
    result = await TOOLKIT.compile(double_task(), solution(source), tmp_path)
    assert not result.ok
    assert "define `def run(x: torch.Tensor, y: torch.Tensor) -> None`" in result.diagnostics[0].message


@pytest.mark.parametrize(
    "source",
    [
        "run = lambda x, y: y.copy_(2 * x)\n",
        "from helper import run\n",
        "from helper import *\n",
        "try:\n    from fast import run\nexcept ImportError:\n    def run(x, y): ...\n",
        "def run(*tensors): ...\n",
        "def run(x, y, block=16): ...\n",
    ],
)
async def test_an_entry_function_may_be_bound_in_any_way(tmp_path: Path, source: str) -> None:
    result = await TOOLKIT.compile(double_task(), solution(source), tmp_path)
    assert result.ok, result.log


async def test_a_function_with_other_arguments_than_the_task_passes_is_an_error(tmp_path: Path) -> None:
    result = await TOOLKIT.compile(double_task(), solution("def run(x):\n    return 2 * x\n"), tmp_path)
    assert not result.ok
    assert result.diagnostics[0].message == "run takes 1 arguments, the task passes 2: x, y"
    returning = solution("def run(x):\n    return 2 * x\n", destination_passing_style=False)
    assert (await TOOLKIT.compile(double_task(), returning, tmp_path)).ok


async def test_flags_mean_nothing_to_python_and_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="neither compiler flags nor tunables"):
        await TOOLKIT.compile(double_task(), solution(flags=["-O3"]), tmp_path)
