"""Inputs, float64 reference and new content of the GPU corpus' task."""

from typing import Any

import torch
from torch import Generator, Tensor

Tensors = dict[str, Tensor]


def make_inputs(axes: dict[str, int], distribution: str, generator: Generator) -> Tensors:
    x = torch.randn(axes["rows"], axes["columns"], generator=generator)
    return {"x": x * 40 if distribution == "wide" else x}


def reference(inputs: Tensors) -> Tensors:
    return {"y": inputs["x"].double().softmax(-1)}


def refresh(inputs: Tensors, draw: Any) -> None:
    """New normal values."""
    draw.normal(inputs["x"])
