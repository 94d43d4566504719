"""Loads a task's reference and draws cases from it: inputs with the values expected of them. Judge only."""

import importlib.util
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from toolkits.core.errors import HarnessError
from toolkits.core.schema import Task

Values = dict[str, Any]
"""Tensors and Python scalars by name."""


@dataclass(frozen=True)
class Reference:
    """The three functions of a task's reference.py."""

    make_inputs: Callable[[dict[str, int], str, torch.Generator], Values]
    reference: Callable[[Values], Values]
    refresh: Callable[[Values, Values, torch.Generator], tuple[Values, Values]]


@dataclass(frozen=True)
class Case:
    """One drawn input with its expected outputs (float64) and the auxiliary values that checks name."""

    axes: dict[str, int]
    distribution: str
    inputs: Values
    expected: Values


def load_reference(folder: Path) -> Reference:
    """Import `folder`/reference.py under a private name; several tasks never share a namespace."""
    path = folder / "reference.py"
    spec = importlib.util.spec_from_file_location(f"_kernel_lab_reference_{folder.name}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise HarnessError(f"the task has no readable {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return Reference(module.make_inputs, module.reference, module.refresh)


def generator(seed: int) -> torch.Generator:
    """A private random stream: candidates that seed the global one change nothing."""
    return torch.Generator().manual_seed(seed)


def secret_generator() -> torch.Generator:
    """A stream whose seed nobody chose and nothing records before the verdict."""
    return generator(secrets.randbits(62))


def draw(task: Task, reference: Reference, axes: dict[str, int], distribution: str) -> Case:
    """Fresh inputs of a distribution and what the reference makes of them."""
    stream = secret_generator()
    inputs = reference.make_inputs(task.sizes(axes), distribution, stream)
    return Case(axes, distribution, inputs, reference.reference(inputs))


def refreshed(reference: Reference, case: Case, stream: torch.Generator, *, expected: bool) -> Case:
    """New content by an exact symmetry of the task: costs about a copy. Expected values only where they are needed."""
    inputs, known = reference.refresh(case.inputs, case.expected if expected else {}, stream)
    return Case(case.axes, case.distribution, inputs, known)
