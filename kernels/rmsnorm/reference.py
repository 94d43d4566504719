"""Inputs, float64 reference and new content of the root-mean-square normalisation."""

from typing import Any

import torch
from torch import Generator, Tensor

Inputs = dict[str, Tensor | float]
Outputs = dict[str, Tensor]

EPS = 1e-6


def make_inputs(axes: dict[str, int], distribution: str, generator: Generator) -> Inputs:
    rows, cols = axes["rows"], axes["cols"]
    x = torch.randn(rows, cols, generator=generator)
    w = torch.randn(cols, generator=generator)
    if distribution == "large":
        x = x * 1e15
    elif distribution == "tiny":
        x = x * EPS**0.5
    elif distribution == "outlier":
        x.scatter_(1, torch.randint(cols, (rows, 1), generator=generator), 1000.0)
    elif distribution == "constant":
        x = x[:, :1].repeat(1, cols)
    elif distribution == "mixed_rows":
        x = x * torch.logspace(-4, 4, rows)[:, None]
        x[rows // 2] = 0
    return {"x": x, "w": w, "eps": EPS}


def reference(inputs: Inputs) -> Outputs:
    x, w = torch.as_tensor(inputs["x"]).double(), torch.as_tensor(inputs["w"]).double()
    eps = torch.tensor(inputs["eps"], dtype=torch.float32).double()
    return {"y": x * w / (x.square().mean(-1, keepdim=True) + eps).sqrt()}


def refresh(inputs: Inputs, draw: Any) -> None:
    """New normal values and weights."""
    draw.normal(inputs["x"])
    draw.normal(inputs["w"])
