"""Kimi Delta Attention prefill done wrong, one named defect a function, and once right.

`faithful` is an independent second form (chunks and a triangular solve in float32) that must be accepted; every mutant
is the same code with one defect and must be rejected under at least one distribution.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

LOWER_BOUND = -5.0
NORM_EPSILON = 1e-6
CHUNK = 16


@dataclass(frozen=True)
class Sequence:
    """One sequence made ready: everything [heads, tokens, ..], decays as logarithms."""

    q: Tensor
    k: Tensor
    v: Tensor
    log_decay: Tensor
    strength: Tensor


def _prefill(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, A_log: Tensor, dt_bias: Tensor, cu_seqlens: Tensor,
    initial_state: Tensor, scale: float, out: Tensor, final_state: Tensor, bug: str = "", chunk: int = CHUNK,
) -> None:  # fmt: skip
    everything = _prepare(q, k, v, g, beta, A_log, dt_bias, _scale(scale, q.shape[2], bug), bug)
    bounds = cu_seqlens.tolist()
    state = torch.zeros_like(initial_state[0])
    for n, (start, end) in enumerate(pairwise(bounds)):
        if not (bug == "state_leak" and n > 0):
            state = _initial(initial_state[n], bug)
        part = Sequence(*(x[:, start:end] for x in vars(everything).values()))
        values, state = _run(part, state, bug, chunk)
        out[start:end] = values.transpose(0, 1)
        final_state[n] = _final(state, end - start, bug)


def _scale(scale: float, dim: int, bug: str) -> float:
    return {"no_scale": 1.0, "scale_recomputed": dim**-0.5}.get(bug, scale)


def _prepare(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, a_log: Tensor, dt_bias: Tensor, scale: float, bug: str
) -> Sequence:
    slope = a_log if bug == "a_log_not_exponentiated" else a_log.exp()
    raw = slope[:, None] * (g if bug == "no_dt_bias" else g + dt_bias)
    log_decay = -torch.nn.functional.softplus(raw) if bug == "softplus_gate" else LOWER_BOUND * torch.sigmoid(raw)
    if bug == "one_gate_per_head":
        log_decay = log_decay.mean(-1, keepdim=True).expand_as(log_decay)
    keys = k if bug == "no_key_norm" else _unit(k)
    queries = q if bug == "no_query_norm" else _unit(q)
    strength = beta if bug == "beta_not_sigmoided" else torch.sigmoid(beta)
    heads_first = (x.transpose(0, 1) for x in (queries * scale, keys, v, log_decay, strength.unsqueeze(-1)))
    return Sequence(*heads_first)


def _unit(x: Tensor) -> Tensor:
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + NORM_EPSILON)


def _initial(state: Tensor, bug: str) -> Tensor:
    """[heads, K, V] from the task's [heads, V, K]."""
    if bug == "initial_state_ignored":
        return torch.zeros_like(state)
    return state.clone() if bug == "initial_state_transposed" else state.mT.clone()


def _final(state: Tensor, tokens: int, bug: str) -> Tensor:
    if bug == "empty_sequence_zeroed" and tokens == 0:
        return torch.zeros_like(state)
    return state if bug == "final_state_transposed" else state.mT


def _run(part: Sequence, state: Tensor, bug: str, chunk: int) -> tuple[Tensor, Tensor]:
    """All chunks of one sequence: outputs and the state after the last."""
    out = torch.zeros_like(part.v)
    before = state
    for number, start in enumerate(range(0, part.v.shape[1], chunk)):
        rows = slice(start, min(start + chunk, part.v.shape[1]))
        if bug == "drop_tail_chunk" and number > 0 and rows.stop - rows.start < chunk:
            continue
        if bug == "no_handoff" and number > 0:
            state = torch.zeros_like(state)
        entering = before if bug == "handoff_late" and number > 1 else state
        before = state
        piece = Sequence(*(x[:, rows] for x in vars(part).values()))
        out[:, rows], state = _chunk(piece, entering, bug)
        if bug == "bfloat16_state":
            state = state.bfloat16().float()
    return out, state


def _chunk(x: Sequence, state: Tensor, bug: str) -> tuple[Tensor, Tensor]:
    total = x.log_decay.cumsum(1)
    last = total[:, -1:]
    if bug == "decay_after_update":
        total = total - x.log_decay
    pair = _pairwise_decay(total, bug)
    scores = torch.einsum("hik,hjk,hijk->hij", x.k, x.k, pair).tril(-1) * x.strength
    wrong = x.v - (x.k * total.exp()) @ state
    update = wrong if bug == "no_beta" else x.strength * wrong
    if bug != "no_delta_rule":
        system = scores + torch.eye(scores.shape[1])
        update = torch.linalg.solve_triangular(system, update, upper=False, unitriangular=True)
    read = torch.einsum("hik,hjk,hijk->hij", x.q, x.k, pair).tril(-1 if bug == "read_before_write" else 0)
    out = (x.q * total.exp()) @ state + read @ update
    kept = torch.ones_like(last) if bug == "no_state_decay" else last.exp()
    return out, kept.mT * state + (x.k * (last - total).exp()).mT @ update


def _pairwise_decay(total: Tensor, bug: str) -> Tensor:
    """exp(G_i - G_j) for every pair and channel; only j <= i is used."""
    if bug == "split_exponent":
        return total.exp().unsqueeze(2) * (-total).exp().unsqueeze(1)
    return (total.unsqueeze(2) - total.unsqueeze(1)).clamp_max(0.0).exp()


def faithful(*arguments: Any) -> None:
    _prefill(*arguments)


def _mutant(bug: str, chunk: int = CHUNK) -> Callable[..., None]:
    def mutant(*arguments: Any) -> None:
        _prefill(*arguments, bug=bug, chunk=chunk)

    return mutant


# How chunks hand the state on.
no_handoff = _mutant("no_handoff")
handoff_late = _mutant("handoff_late")
drop_tail_chunk = _mutant("drop_tail_chunk")
state_leak = _mutant("state_leak")
empty_sequence_zeroed = _mutant("empty_sequence_zeroed")
initial_state_ignored = _mutant("initial_state_ignored")
initial_state_transposed = _mutant("initial_state_transposed")
final_state_transposed = _mutant("final_state_transposed")
bfloat16_state = _mutant("bfloat16_state")
# The recurrence itself.
decay_after_update = _mutant("decay_after_update")
no_state_decay = _mutant("no_state_decay")
no_beta = _mutant("no_beta")
no_delta_rule = _mutant("no_delta_rule")
read_before_write = _mutant("read_before_write")
split_exponent = _mutant("split_exponent", chunk=64)
# What happens to the raw inputs.
one_gate_per_head = _mutant("one_gate_per_head")
a_log_not_exponentiated = _mutant("a_log_not_exponentiated")
no_dt_bias = _mutant("no_dt_bias")
softplus_gate = _mutant("softplus_gate")
beta_not_sigmoided = _mutant("beta_not_sigmoided")
no_key_norm = _mutant("no_key_norm")
no_query_norm = _mutant("no_query_norm")
no_scale = _mutant("no_scale")
scale_recomputed = _mutant("scale_recomputed")

MUTANTS = [
    "no_handoff", "handoff_late", "drop_tail_chunk", "state_leak", "empty_sequence_zeroed", "initial_state_ignored",
    "initial_state_transposed", "final_state_transposed", "bfloat16_state", "decay_after_update", "no_state_decay",
    "no_beta", "no_delta_rule", "read_before_write", "split_exponent", "one_gate_per_head", "a_log_not_exponentiated",
    "no_dt_bias", "softplus_gate", "beta_not_sigmoided", "no_key_norm", "no_query_norm", "no_scale",
    "scale_recomputed",
]  # fmt: skip
