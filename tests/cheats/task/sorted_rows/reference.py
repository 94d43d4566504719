"""Inputs, float64 reference and new content of the corpus's task with a plan step."""

from typing import Any

import torch
from torch import Generator, Tensor

Tensors = dict[str, Tensor]
KEYS = 1 << 30


def make_inputs(axes: dict[str, int], distribution: str, generator: Generator) -> Tensors:
    rows, columns = axes["rows"], axes["columns"]
    high = 3 if distribution == "few_keys" else KEYS
    key = torch.randint(high, (rows,), generator=generator, dtype=torch.int32)
    if distribution == "sorted":
        key = key.sort().values
    return {"x": torch.randn(rows, columns, generator=generator), "key": key}


def reference(inputs: Tensors) -> Tensors:
    order = inputs["key"].sort(stable=True).indices
    return {"y": inputs["x"].double()[order].exp()}


def refresh(inputs: Tensors, draw: Any) -> None:
    """New normal values, and keys in a new order."""
    draw.normal(inputs["x"])
    inputs["key"].copy_(draw.integers(KEYS, (len(inputs["key"]),)))
