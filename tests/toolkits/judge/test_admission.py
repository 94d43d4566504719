"""A task is admitted only if answers that compute nothing fail it and its reference is a function that draws anew."""

import json
import random
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from mcp_server.workspace import Workspace
from tests.toolkits.conftest import REFERENCE, SPEC
from toolkits.core.judge.admission import refusal
from toolkits.core.judge.inputs import draw, load_reference
from toolkits.core.schema import Task, Workload

ROOT = Path(__file__).parents[3]
SHIPPED = sorted(path.parent.name for path in (ROOT / "kernels").glob("*/task.yaml"))
Asked = Callable[..., str]


def _asked(task: Task) -> str:
    """What admission says of a task with newly drawn rounds."""
    reference = load_reference(task.folder, task.reference_timeout_s)
    rounds = [draw(task, reference, axes, name) for axes in task.correctness for name in task.distributions]
    return refusal(task, reference, rounds)


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    """Ask of the scale task with another reference and other fields."""

    def ask(reference: str = REFERENCE, **changes: object) -> str:
        (tmp_path / "reference.py").write_text(textwrap.dedent(reference), encoding="utf-8")
        spec = json.loads(json.dumps(SPEC | changes))
        workloads = [Workload(uuid="one", axes={"rows": 8, "columns": 8})]
        return _asked(Task.model_validate(spec | {"folder": tmp_path, "content_hash": "x", "workloads": workloads}))

    return ask


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_task_is_admitted(name: str, tmp_path: Path) -> None:
    assert _asked(Workspace(tmp_path).task(name)) == ""


def test_the_task_of_the_corpus_of_cheats_is_admitted() -> None:
    folder = ROOT / "tests" / "cheats" / "task" / "pick_softmax"
    spec = yaml.safe_load((folder / "task.yaml").read_text(encoding="utf-8"))
    workloads = [Workload(uuid="one", axes={"rows": 300, "columns": 200})]
    assert _asked(Task.model_validate(spec | {"folder": folder, "content_hash": "x", "workloads": workloads})) == ""


def test_the_scale_task_is_admitted(asked: Asked) -> None:
    assert asked() == ""


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        # The reference is no function of its inputs.
        ("def reference(inputs):", "def reference(inputs):\n    inputs['x'] *= 2", "changes its input x"),
        ("def reference(inputs):", "def reference(inputs):\n    inputs['factor'] += 1", "changes its input factor"),
        ("def reference(inputs):", "def reference(inputs):\n    torch.rand(1)", "global random stream"),
        ("def reference(inputs):", "def reference(inputs):\n    torch.manual_seed(3)", "global random stream"),
        ('inputs["x"].double() *', 'inputs["x"].double() * next(COUNT) *', "disagrees with itself"),
        ('* inputs["factor"]}', '* float("inf")}', "no value of output y is finite"),
        # The content is not what the generator makes it.
        ("generator=generator)", "generator=None)", "draws from the global random stream"),
        ('"factor": 2.5', '"factor": random.random()', "draws from the global random stream"),
        ("    x = torch.randn(", "    torch.manual_seed(1)\n    x = torch.randn(", "or seeds it"),
        ("    x = torch", "    generator.manual_seed(1)\n    x = torch", "the same content whatever the generator"),
        # Answers that compute nothing.
        ('* inputs["factor"]', "* 1e-30 * 0", "an output of nothing but 0 passes"),
        ('* inputs["factor"]', "* 0 + 1", "an output of nothing but 1 passes"),
        ('* inputs["factor"]', "* 0 + 7.5", "the mean of the expected values everywhere passes"),
        ('* inputs["factor"]', "* 1", "a copy of input x passes"),
        ('inputs["x"].double() *', "1.5 * inputs['x'].argsort().argsort().sort().values *", "of one draw passes"),
    ],
)  # fmt: skip
def test_a_task_that_cannot_judge_is_refused_with_what_to_change(asked: Asked, old: str, new: str, said: str) -> None:
    assert old in REFERENCE
    states = torch.get_rng_state(), random.getstate()
    text = "import itertools, random\nCOUNT = itertools.count(1)\n" + REFERENCE.replace(old, new)
    assert said in asked(text)
    torch.set_rng_state(states[0])
    random.setstate(states[1])


def test_checks_too_wide_for_their_output_are_refused(asked: Asked) -> None:
    wide = [{"output": "y", "rule": "allclose", "tolerance": 1e6}]
    assert "an output of nothing but 0 passes every check of output y" in asked(checks=wide)
    assert asked(checks=[*wide, {"output": "y", "rule": "rel_l2", "tolerance": 0.1}]) == ""


def test_ranks_that_agree_with_each_other_need_a_check_of_their_values(asked: Asked) -> None:
    alike: dict[str, Any] = {"output": "y", "rule": "identical", "tolerance": 0, "parameters": {"across": 0}}
    constant = REFERENCE.replace('inputs["x"].double()', 'inputs["x"][:1].double().expand_as(inputs["x"])')
    assert "passes every check" in asked(constant, checks=[alike])
    assert asked(constant, checks=[alike, {"output": "y", "rule": "rel_l2", "tolerance": 1e-6}]) == ""


def test_a_distribution_in_which_zeros_are_right_is_legitimate_beside_others(asked: Asked) -> None:
    zeros = REFERENCE.replace("x * (100", "x * (0 if distribution == 'large' else 100")
    assert asked(zeros) == ""
    alone = {"large": {"description": "nothing but zeros"}}
    assert "nothing but 0 passes" in asked(zeros, distributions=alone)


def test_an_output_without_check_or_without_shape_is_refused(asked: Asked) -> None:
    two = {"y": {"shape": ["rows", "columns"], "dtype": "float32"}, "z": {"shape": ["rows"], "dtype": "float32"}}
    more = REFERENCE.replace('["factor"]}\n\ndef', '["factor"], "z": inputs["x"][:, 0].double()}\n\ndef')
    assert "output z has no check" in asked(more, outputs=two)
    checks = [{"output": name, "rule": "rel_l2", "tolerance": 1e-6} for name in two]
    assert asked(more, outputs=two, checks=checks) == ""
    scalar = REFERENCE.replace('inputs["x"].double() * inputs["factor"]', "1.5")
    assert "shape null" in asked(scalar, outputs={"y": {"shape": None, "dtype": "float32"}}, checks=SPEC["checks"])


def test_one_easy_output_beside_a_hard_one_is_refused(asked: Asked) -> None:
    two = {"y": {"shape": ["rows", "columns"], "dtype": "float32"}, "z": {"shape": ["rows"], "dtype": "float32"}}
    more = REFERENCE.replace('["factor"]}\n\ndef', '["factor"], "z": inputs["x"][:, 0].double() * 0}\n\ndef')
    checks = [{"output": name, "rule": "allclose", "tolerance": 1e-6} for name in two]
    assert "nothing but 0 passes every check of output z" in asked(more, outputs=two, checks=checks)


INTEGERS = """
import torch

def make_inputs(axes, distribution, generator):
    return {"x": torch.randint(0, 9, (axes["rows"], axes["columns"]), generator=generator), "factor": 1.0}

def reference(inputs):
    return {"y": RESULT}
"""
DTYPED = {"distributions": {"normal": {"description": "digits"}}, "correctness": [{"rows": 2, "columns": 3}]}


def _typed(dtype: str, tolerance: float = 0) -> dict[str, Any]:
    digits = {"shape": ["rows", "columns"], "dtype": "int64"}
    return DTYPED | {
        "inputs": {"x": digits, "factor": {"shape": None, "dtype": "float32"}},
        "outputs": {"y": {"shape": ["rows", "columns"], "dtype": dtype}},
        "checks": [{"output": "y", "rule": "allclose", "tolerance": tolerance}],
    }


@pytest.mark.parametrize(
    ("dtype", "result", "said"),
    [
        ("int64", "inputs['x'] + 1", ""),
        ("int64", "inputs['x']", "a copy of input x"),
        ("int64", "inputs['x'] * 0 - 1", "the most common value everywhere passes"),
        ("int32", "inputs['x'] * 0", "nothing but 0 passes"),
        ("bool", "inputs['x'] > 4", ""),
        ("bool", "inputs['x'] > 9", "nothing but False passes"),
        ("bool", "inputs['x'] < 9", "nothing but True passes"),
    ],
)
def test_integers_and_bools_have_constants_of_their_own(asked: Asked, dtype: str, result: str, said: str) -> None:
    answer = asked(INTEGERS.replace("RESULT", result), **_typed(dtype))
    assert said in answer and bool(said) == bool(answer)


def test_small_rounds_are_not_refused_for_their_luck(asked: Asked) -> None:
    one = _typed("bool") | {"correctness": [{"rows": 1, "columns": 1}]}
    for _ in range(30):
        assert asked(INTEGERS.replace("RESULT", "inputs['x'] > 4"), **one) == ""


def test_infinities_that_come_again_are_admitted_and_others_are_not(asked: Asked) -> None:
    log = REFERENCE.replace('inputs["x"].double() * inputs["factor"]', 'inputs["x"].double().clamp(min=0).log()')
    assert asked(log) == ""
    hidden = 'inputs["x"].double().masked_fill(torch.arange(inputs["x"].shape[1]) == next(COUNT), float("-inf"))'
    moving = REFERENCE.replace('inputs["x"].double() * inputs["factor"]', hidden)
    assert "disagrees with itself" in asked("import itertools\nCOUNT = itertools.count(1)\n" + moving)


def test_sizes_without_elements_alone_judge_nobody(asked: Asked) -> None:
    empty = {"rows": 0, "columns": 3}
    assert "sizes above zero" in asked(correctness=[empty])
    assert asked(correctness=[empty, {"rows": 3, "columns": 5}]) == ""
