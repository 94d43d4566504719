"""Loads a task's reference and draws cases from it: inputs with the values expected of them. Judge only.

A task's own code may raise anything and return anything: what comes of it is an InvalidReference that says what.
"""

import importlib.util
import secrets
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from toolkits.core.judge.content import Draw
from toolkits.core.judge.taskcode import advice, time_limit
from toolkits.core.judge.worker import DTYPES
from toolkits.core.schema import Task, TensorSpec
from toolkits.core.signature import shape_of

Values = dict[str, Any]
"""Tensors and Python scalars by name."""


class InvalidReference(Exception):
    """The task's own code or values cannot judge anybody."""


@dataclass(frozen=True)
class Reference:
    """The functions of a task's reference.py; without `refresh`, all new content comes from `make_inputs`."""

    make_inputs: Callable[[dict[str, int], str, torch.Generator], Values]
    reference: Callable[[Values], Values]
    refresh: Callable[[Values, Draw], object] | None


@dataclass(frozen=True)
class Case:
    """One drawn input with its expected outputs (float64) and the auxiliary values that checks name."""

    axes: dict[str, int]
    distribution: str
    inputs: Values
    expected: Values
    norms: Values = field(default_factory=dict[str, Any], compare=False)
    """Of the rows of expected values, once they were needed."""


def load_reference(folder: Path, limit_s: float) -> Reference:
    """Import `folder`/reference.py under a private name; several tasks never share a namespace."""
    path = folder / "reference.py"
    spec = importlib.util.spec_from_file_location(f"_kernel_lab_reference_{folder.name}", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    with _of_the_task(f"loading {path}", limit_s):
        spec.loader.exec_module(module)
        return Reference(module.make_inputs, module.reference, getattr(module, "refresh", None))


def generator(seed: int) -> torch.Generator:
    """A private random stream: candidates that seed the global one change nothing."""
    return torch.Generator().manual_seed(seed)


def secret_generator() -> torch.Generator:
    """A stream whose seed nobody chose and nothing records before the verdict."""
    return generator(secrets.randbits(62))


def draw(task: Task, reference: Reference, axes: dict[str, int], distribution: str) -> Case:
    """Fresh inputs of a distribution and what the reference makes of them."""
    return with_expected(task, reference, drawn(task, reference, axes, distribution, secret_generator()))


def drawn(task: Task, reference: Reference, axes: dict[str, int], distribution: str, stream: torch.Generator) -> Case:
    """Fresh inputs of a distribution, without expected values."""
    with _of_the_task("make_inputs", task.reference_timeout_s):
        inputs = reference.make_inputs(task.sizes(axes), distribution, stream)
    return _valid(task, Case(axes, distribution, inputs, {}), "make_inputs", expected=False)


def with_expected(task: Task, reference: Reference, case: Case) -> Case:
    """The same inputs with what the reference makes of them."""
    with _of_the_task("reference", task.reference_timeout_s):
        known = reference.reference(case.inputs)
    return _valid(task, replace(case, expected=known, norms={}), "reference", expected=True)


def refreshed(task: Task, reference: Reference, inputs: Values, source: Draw) -> None:
    """New content of the task's first distribution, written over `inputs` by the task's own `refresh`."""
    assert reference.refresh
    given = {name: value for name, value in inputs.items() if isinstance(value, torch.Tensor)}
    with _of_the_task("refresh", task.reference_timeout_s):
        reference.refresh(inputs, source)
    moved = [name for name, tensor in given.items() if inputs.get(name) is not tensor]
    scalars = {name: spec for name, spec in task.inputs.items() if spec.shape is None}
    if problem := _problem(scalars, inputs, {}, exact=True):
        raise InvalidReference(f"refresh: {problem}")
    if moved:
        raise InvalidReference(f"refresh put another tensor in place of {', '.join(moved)}: fill the given one instead")


@contextmanager
def _of_the_task(function: str, limit_s: float) -> Generator[None]:
    """Run code of the task; whatever it raises is the task's fault, and so is its time limit."""
    try:
        with time_limit(limit_s):
            yield
    except (Exception, SystemExit) as error:
        raise InvalidReference(f"{function} raised {type(error).__name__}: {error}{advice(error)}") from error


def _valid(task: Task, case: Case, function: str, *, expected: bool) -> Case:
    """The case, if its values are what task.yaml says they are; a wrong shape would be broadcast and never be seen."""
    sizes = task.sizes(case.axes)
    problem = _problem(task.inputs, case.inputs, sizes, exact=True)
    if expected:
        problem = problem or _problem(task.outputs, case.expected, sizes, exact=False)
    if problem:
        raise InvalidReference(f"{function} under distribution {case.distribution!r}: {problem}")
    return case


def _problem(specs: Mapping[str, TensorSpec], values: Any, sizes: dict[str, int], *, exact: bool) -> str:
    """The first value that is not as specified, or empty; `exact` wants the dtype too (expected values are float64)."""
    if type(values) is not dict:
        return f"returns {values!r:.40}, not a dict by name"
    found: Values = values  # pyright: ignore[reportUnknownVariableType]
    for name, spec in specs.items():
        value = found.get(name)
        if spec.shape is None:
            if type(value) not in (bool, int, float):
                return f"returns no Python number {name!r}"
        elif not isinstance(value, torch.Tensor):
            return f"returns no tensor {name!r}"
        elif tuple(value.shape) != (shape := shape_of(spec, sizes)):
            return f"{name} has shape {list(value.shape)}, task.yaml says {list(shape)}"
        elif exact and value.dtype is not DTYPES[spec.dtype]:
            return f"{name} is {value.dtype}, task.yaml says {spec.dtype}"
    return ""
