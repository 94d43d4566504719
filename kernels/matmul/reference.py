"""Inputs, float64 reference and new content of the matrix product."""

from typing import Any

import torch
from torch import Generator, Tensor

Tensors = dict[str, Tensor]


def make_inputs(axes: dict[str, int], distribution: str, generator: Generator) -> Tensors:
    rows, cols, depth = axes["rows"], axes["cols"], axes["depth"]
    a = torch.randn(rows, depth, generator=generator)
    b = torch.randn(depth, cols, generator=generator)
    half = depth // 2
    if distribution == "positive":
        a, b = a.sigmoid() + 0.5, b.sigmoid() + 0.5
    elif distribution == "scaled_rows":
        a = a * torch.logspace(-3, 3, rows)[:, None]
    elif distribution == "cancel":
        a[:, half : 2 * half] = -a[:, :half]
        b[half : 2 * half] = b[:half] + 0.01 * b[half : 2 * half]
        a[:, 2 * half :] = 0
    elif distribution == "permutation":
        a = torch.eye(depth)[torch.randint(depth, (rows,), generator=generator)]
    return {"a": a, "b": b}


def reference(inputs: Tensors) -> Tensors:
    return {"out": inputs["a"].double() @ inputs["b"].double()}


def refresh(inputs: Tensors, draw: Any) -> None:
    """New normal matrices."""
    draw.normal(inputs["a"])
    draw.normal(inputs["b"])
