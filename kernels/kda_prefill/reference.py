"""Kimi Delta Attention prefill: input distributions, the float64 recurrence, new content."""

from typing import Any

import torch
from torch import Tensor

LOWER_BOUND = -5.0
NORM_EPSILON = 1e-6

Values = dict[str, Any]


def make_inputs(axes: dict[str, int], distribution: str, generator: torch.Generator) -> Values:
    """The distributions differ in how long the state remembers, in the initial state, and in how alike the keys are."""
    tokens, heads, dim, sequences = (axes[name] for name in ("tokens", "heads", "dim", "sequences"))

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    inputs: Values = {name: normal(tokens, heads, dim) for name in ("q", "k", "v", "g")}
    inputs["beta"] = normal(tokens, heads)
    inputs["A_log"] = torch.rand(heads, generator=generator)
    inputs["dt_bias"] = torch.rand(heads, dim, generator=generator)
    inputs["cu_seqlens"] = _boundaries(tokens, sequences, generator)
    inputs["initial_state"] = 0.1 * normal(sequences, heads, dim, dim)
    # Not quite 1/sqrt(dim), so that a kernel which recomputes it is wrong.
    inputs["scale"] = _as_float32(dim**-0.5 * (0.75 + 0.5 * _uniform(generator)))
    return _shape_memory(inputs, distribution, generator)


def _shape_memory(inputs: Values, distribution: str, generator: torch.Generator) -> Values:
    """Move the gates: slow ones forget 0.2 % a token, fast ones nearly everything at once."""
    g, dt_bias = inputs["g"], inputs["dt_bias"]
    if distribution in ("slow", "repeat_keys"):
        inputs["g"], inputs["dt_bias"] = 0.1 * g - 8.0, torch.zeros_like(dt_bias)
    if distribution == "fast":
        inputs["g"] = 0.1 * g + 8.0
    if distribution in ("mixed", "mixed_no_state"):
        slow = torch.rand(dt_bias.shape, generator=generator) < 0.5
        inputs["g"], inputs["dt_bias"] = 0.1 * g, torch.where(slow, -8.0, 8.0)
    if distribution == "mixed_no_state":
        inputs["initial_state"] = torch.zeros_like(inputs["initial_state"])
    if distribution == "repeat_keys":
        inputs["k"] = inputs["k"][:1].expand_as(g).contiguous()
        inputs["beta"] = inputs["beta"] + 2.0
    return inputs


def _boundaries(tokens: int, sequences: int, generator: torch.Generator) -> Tensor:
    """Log-normal lengths that sum to `tokens`; from four sequences on, one is empty and another has one token."""
    weights = torch.randn(sequences, generator=generator, dtype=torch.float64).exp()
    special = (
        torch.randperm(sequences, generator=generator)[:2] if sequences >= 4 else torch.empty(0, dtype=torch.int64)
    )
    weights[special] = 0.0
    spare = tokens - (1 if len(special) else 0)
    ends = (weights.cumsum(0) / weights.sum() * spare).round().long()
    lengths = torch.diff(ends, prepend=torch.zeros(1, dtype=torch.int64))
    if len(special):
        lengths[special[0]] += 1
    return torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])


def _uniform(generator: torch.Generator) -> float:
    return float(torch.rand((), generator=generator))


def _as_float32(value: float) -> float:
    return float(torch.tensor(value, dtype=torch.float32))


def reference(inputs: Values) -> dict[str, Tensor]:
    """The recurrence token by token, every head at once."""
    q, k = _unit(inputs["q"].double()) * inputs["scale"], _unit(inputs["k"].double())
    v, beta = inputs["v"].double(), torch.sigmoid(inputs["beta"].double())
    decay = _decay(inputs["g"].double(), inputs["A_log"].double(), inputs["dt_bias"].double())
    out, final_state = torch.zeros_like(v), inputs["initial_state"].double()
    bounds = inputs["cu_seqlens"].tolist()
    for state, start, end in zip(final_state, bounds[:-1], bounds[1:], strict=True):
        for t in range(start, end):
            state.mul_(decay[t].unsqueeze(1))  # [heads, V, K], updated in place
            surprise = v[t].unsqueeze(2) - state @ k[t].unsqueeze(2)
            state.baddbmm_(beta[t, :, None, None] * surprise, k[t].unsqueeze(1))
            out[t] = (state @ q[t].unsqueeze(2)).squeeze(2)
    return {"out": out, "final_state": final_state}


def _unit(x: Tensor) -> Tensor:
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + NORM_EPSILON)


def _decay(g: Tensor, a_log: Tensor, dt_bias: Tensor) -> Tensor:
    return torch.exp(LOWER_BOUND * torch.sigmoid(a_log.exp().unsqueeze(1) * (g + dt_bias)))


def refresh(inputs: Values, draw: Any) -> None:
    """New tensors of distribution `random`; scale and sequences stay: a plan for the same boundaries may be kept."""
    for name in ("q", "k", "v", "g", "beta"):
        draw.normal(inputs[name])
    for name in ("A_log", "dt_bias"):
        draw.uniform(inputs[name])
    draw.normal(inputs["initial_state"]).mul_(0.1)
