"""Inputs, float64 reference and exact symmetry of the matrix product."""

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


def refresh(inputs: Tensors, expected: Tensors, generator: Generator) -> tuple[Tensors, Tensors]:
    """Flip signs along all three axes: every rounding stays the same, wherever an entry is computed."""
    a, b = inputs["a"], inputs["b"]
    along_rows, along_depth, along_cols = (_signs(length, generator) for length in (len(a), *b.shape))
    moved = {"a": a * along_rows[:, None] * along_depth, "b": b * along_depth[:, None] * along_cols}
    return moved, {name: value * along_rows[:, None] * along_cols for name, value in expected.items()}


def _signs(length: int, generator: Generator) -> Tensor:
    return torch.randint(2, (length,), generator=generator).float() * 2 - 1
