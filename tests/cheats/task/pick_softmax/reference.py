"""Inputs, float64 reference and new content of the corpus's task."""

from typing import Any

import torch
from torch import Generator, Tensor

Tensors = dict[str, Tensor]


def make_inputs(axes: dict[str, int], distribution: str, generator: Generator) -> Tensors:
    rows, columns = axes["rows"], axes["columns"]
    x = torch.randn(rows, columns, generator=generator)
    pick = torch.randint(rows, (rows,), generator=generator, dtype=torch.int32)
    if distribution == "wide":
        x = x * 40
    elif distribution == "masked":
        mask = torch.rand(rows, columns, generator=generator) < 1 / 3
        mask[:, columns // 2] = False
        x = x.masked_fill(mask, float("-inf"))
    elif distribution == "one_row":
        pick = pick[:1].expand(rows).clone()
    return {"x": x, "pick": pick}


def reference(inputs: Tensors) -> Tensors:
    rows = inputs["x"][inputs["pick"].long()].double()
    return {"y": rows.softmax(-1), "best": rows.argmax(-1)}


def refresh(inputs: Tensors, draw: Any) -> None:
    """New normal values, picked in a new order."""
    draw.normal(inputs["x"])
    rows = len(inputs["pick"])
    inputs["pick"].copy_(draw.integers(rows, (rows,)))
