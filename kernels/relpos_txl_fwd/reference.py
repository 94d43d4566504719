"""Transformer-XL relative attention: input distributions, the float64 formula, new content."""

from typing import Any

import torch
from torch import Tensor

Values = dict[str, Any]


def make_inputs(axes: dict[str, int], distribution: str, generator: torch.Generator) -> Values:
    """Offsets table and biases are asymmetric and never zero: a wrong sign or a forgotten term always shows."""
    heads, tokens, dim = axes["heads"], axes["tokens"], axes["dim"]

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    inputs: Values = {name: normal(heads, tokens, dim) for name in ("q", "k", "v")}
    inputs["r"] = normal(heads, 2 * tokens - 1, dim)
    inputs["u"], inputs["w"] = normal(heads, dim), normal(heads, dim)
    # Not quite 1/sqrt(dim), so that a kernel which recomputes it is wrong.
    inputs["scale"] = _as_float32(dim**-0.5 * (0.75 + 0.5 * float(torch.rand((), generator=generator))))
    _shape_scores(inputs, distribution, generator)
    return inputs


def _shape_scores(inputs: Values, distribution: str, generator: torch.Generator) -> None:
    """Move the scores to where softmax kernels break."""
    tokens = inputs["q"].shape[1]
    if distribution == "large":
        inputs["q"] *= 20.0
    if distribution in ("rising", "falling"):
        # Along a direction that u shares, later keys score ever higher: the running maximum moves in every tile.
        ramp = torch.linspace(-20.0, 20.0, tokens)
        slope = -1.0 if distribution == "falling" else 1.0
        inputs["k"] += (slope * ramp)[:, None] * _along_bias(inputs["u"], inputs["scale"])
    if distribution == "negative":
        inputs["k"] -= 120.0 * _along_bias(inputs["u"], inputs["scale"])
    if distribution == "outlier":
        sink = int(torch.randint(tokens, (), generator=generator))
        inputs["k"][:, sink] += 6.0 * _along_bias(inputs["u"], inputs["scale"]).squeeze(1)
        inputs["v"][:, sink] *= 50.0
    if distribution == "peaked":
        inputs["r"][:, torch.randint(2 * tokens - 1, (1 + tokens // 8,), generator=generator)] *= 4.0


def _along_bias(u: Tensor, scale: float) -> Tensor:
    """[heads, 1, dim]: added to a key, it raises that key's score by about one for every query."""
    return (u / (u.square().sum(-1, keepdim=True) * scale)).unsqueeze(1)


def _as_float32(value: float) -> float:
    return float(torch.tensor(value, dtype=torch.float32))


def reference(inputs: Values) -> dict[str, Tensor]:
    """Everything materialised: one score per query and key, one product per query and offset."""
    q, k, v, r, u, w = (inputs[name].double() for name in ("q", "k", "v", "r", "u", "w"))
    heads, tokens, _ = q.shape
    content = (q + u.unsqueeze(1)) @ k.mT
    by_offset = (q + w.unsqueeze(1)) @ r.mT  # column m belongs to the offset i - j = m - (tokens - 1)
    position = torch.arange(tokens)
    column = position[:, None] - position[None, :] + tokens - 1
    scores = content + by_offset.gather(2, column.expand(heads, tokens, tokens))
    return {"out": torch.softmax(inputs["scale"] * scores, -1) @ v}


def refresh(inputs: Values, draw: Any) -> None:
    """New normal tensors; the scale stays."""
    for name in ("q", "k", "v", "r", "u", "w"):
        draw.normal(inputs[name])
