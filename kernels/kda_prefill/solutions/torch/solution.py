"""Kimi Delta Attention prefill as chunked torch operations; plan, scratch and views are kept per shape and cu_seqlens.

Decays are taken apart into exp(G) and exp(-G), which float32 bears for chunks of up to 17 tokens; 16 is also fastest.
"""

from functools import lru_cache
from itertools import pairwise

import torch
from torch import Tensor

CHUNK = 16
LOWER_BOUND = -5.0
NORM_EPSILON = 1e-6


class Plan:
    """Which token each slot of each chunk holds: chunks ordered by step, then by sequence, longest sequences first."""

    def __init__(self, bounds: tuple[int, ...]) -> None:
        lengths = [end - start for start, end in pairwise(bounds)]
        longest_first = sorted(range(len(lengths)), key=lambda n: -lengths[n])
        self.active: list[int] = []  # sequences that still have tokens at each step
        tokens: list[int] = []
        for step in range(-(-max(lengths) // CHUNK)):
            active = [n for n in longest_first if lengths[n] > step * CHUNK]
            self.active.append(len(active))
            for n in active:
                start = bounds[n] + step * CHUNK
                tokens += [t if t < bounds[n + 1] else -1 for t in range(start, start + CHUNK)]
        self.order = torch.tensor(longest_first)
        self._index(torch.tensor(tokens))

    def _index(self, slots: Tensor) -> None:
        self.chunks = len(slots) // CHUNK
        self.padding = slots < 0
        self.real = (~self.padding).float().view(self.chunks, 1, CHUNK, 1) if bool(self.padding.any()) else None
        self.token = slots.clamp_min(0)
        self.identical = torch.equal(self.token, torch.arange(len(slots))) and self.real is None
        self.slot = torch.argsort(torch.where(self.padding, len(slots), slots))[: int((~self.padding).sum())]
        starts = [sum(self.active[:step]) for step in range(len(self.active))]
        self.steps = [slice(start, start + count) for start, count in zip(starts, self.active, strict=True)]


class Scratch:
    """Buffers for one plan. `left` stacks the rows that meet the state: first K (later W), then Q."""

    def __init__(self, plan: Plan, heads: int, dim: int) -> None:
        chunks, sequences = plan.chunks, len(plan.order)
        self.tokens = torch.empty(chunks * CHUNK, heads, dim)
        self.gate = torch.empty(chunks, heads, CHUNK, dim)
        self.decay = torch.empty(chunks, heads, CHUNK, dim)
        self.minus = torch.empty(chunks, heads, CHUNK, dim)
        self.left = torch.empty(chunks, heads, 2 * CHUNK, dim)
        self.scores = torch.empty(chunks, heads, 2 * CHUNK, CHUNK)
        self.right = torch.empty(chunks, heads, CHUNK, 2 * dim)
        self.solved = torch.empty(chunks, heads, CHUNK, 2 * dim)
        self.read = torch.empty(chunks, heads, 2 * CHUNK, dim)
        self.update = torch.empty(chunks, heads, CHUNK, dim)
        self.state = torch.empty(sequences, heads, dim, dim)
        self.lower = torch.ones(CHUNK, CHUNK).tril()
        self.log_sums = LOWER_BOUND * self.lower
        self.steps = [self._views(step, heads, dim) for step in plan.steps]

    def _views(self, step: slice, heads: int, dim: int) -> tuple[Tensor, ...]:
        """What one step of the loop reads and writes: slicing anew in every call would cost a tenth of it."""
        state = self.state.view(-1, dim, dim)[: (step.stop - step.start) * heads]
        left, read, update, minus = (
            x[step].view(-1, x.shape[2], dim) for x in (self.left, self.read, self.update, self.minus)
        )
        from_values = self.solved[step].view(-1, CHUNK, 2 * dim)[..., :dim]
        last_decay = self.decay[step].view(-1, CHUNK, dim)[:, -1:]
        return left, state.mT, read, from_values, read[:, :CHUNK], update, state, update.mT, minus, last_decay


@lru_cache(maxsize=16)
def prepared(bounds: tuple[int, ...], heads: int, dim: int) -> tuple[Plan, Scratch]:
    plan = Plan(bounds)
    return plan, Scratch(plan, heads, dim)


def kda_prefill(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, A_log: Tensor, dt_bias: Tensor,
    cu_seqlens: Tensor, initial_state: Tensor, scale: float, out: Tensor, final_state: Tensor,
) -> None:  # fmt: skip
    plan, s = prepared(tuple(cu_seqlens.tolist()), q.shape[1], q.shape[2])
    _decays(s, plan, g, A_log, dt_bias)
    _left_and_minus(s, plan, q, k, scale)
    _inside_chunks(s, plan, v, beta)
    torch.index_select(initial_state, 0, plan.order, out=s.state)
    _carry_state(s)
    final_state.index_copy_(0, plan.order, s.state)
    _outputs(s, plan, out)


def _chunked(s: Scratch, plan: Plan, x: Tensor) -> Tensor:
    """[tokens, heads, dim] seen as [chunks, heads, CHUNK, dim]."""
    if not plan.identical:
        x = torch.index_select(x, 0, plan.token, out=s.tokens)
    return x.view(plan.chunks, CHUNK, *x.shape[1:]).transpose(1, 2)


def _decays(s: Scratch, plan: Plan, g: Tensor, a_log: Tensor, dt_bias: Tensor) -> None:
    """decay = exp(G), the product of all decays since the chunk began."""
    torch.add(_chunked(s, plan, g), dt_bias.unsqueeze(1), out=s.gate)
    s.gate.mul_(a_log.exp().view(-1, 1, 1)).sigmoid_()
    if plan.real is not None:
        s.gate.mul_(plan.real)
    torch.matmul(s.log_sums, s.gate, out=s.decay).exp_()


def _left_and_minus(s: Scratch, plan: Plan, q: Tensor, k: Tensor, scale: float) -> None:
    keys = _chunked(s, plan, k)
    torch.mul(keys, _inverse_norm(keys), out=s.minus)
    torch.mul(s.minus, s.decay, out=s.left[:, :, :CHUNK])
    s.minus.div_(s.decay)
    queries = _chunked(s, plan, q)
    torch.mul(queries, _inverse_norm(queries).mul_(scale), out=s.left[:, :, CHUNK:])
    s.left[:, :, CHUNK:].mul_(s.decay)


def _inverse_norm(x: Tensor) -> Tensor:
    return torch.linalg.vector_norm(x, dim=-1, keepdim=True).square_().add_(NORM_EPSILON).rsqrt_()


def _inside_chunks(s: Scratch, plan: Plan, v: Tensor, beta: Tensor) -> None:
    """Scores, and the triangular solve for both right-hand sides: values, and keys that will meet the state."""
    dim = v.shape[-1]
    strength = beta[plan.token].sigmoid_().view(plan.chunks, CHUNK, -1).transpose(1, 2).unsqueeze(-1)
    if plan.real is not None:
        strength = strength * plan.real
    torch.matmul(s.left, s.minus.mT, out=s.scores)
    s.scores[:, :, :CHUNK].mul_(strength)  # the solver reads only what lies below the diagonal
    s.scores[:, :, CHUNK:].mul_(s.lower)
    torch.mul(_chunked(s, plan, v), strength, out=s.right[..., :dim])
    torch.mul(s.left[:, :, :CHUNK], strength, out=s.right[..., dim:])
    torch.linalg.solve_triangular(s.scores[:, :, :CHUNK], s.right, upper=False, unitriangular=True, out=s.solved)
    s.left[:, :, :CHUNK].copy_(s.solved[..., dim:])


def _carry_state(s: Scratch) -> None:
    """The only sequential part: each step reads the states, finds the updates, writes the states."""
    for left, state_mt, read, from_values, from_state, update, state, update_mt, minus, last_decay in s.steps:
        torch.bmm(left, state_mt, out=read)
        torch.sub(from_values, from_state, out=update)
        state.baddbmm_(update_mt, minus).mul_(last_decay)


def _outputs(s: Scratch, plan: Plan, out: Tensor) -> None:
    within = torch.matmul(s.scores[:, :, CHUNK:], s.update, out=s.minus)
    into = out if plan.identical else s.tokens
    torch.add(s.read[:, :, CHUNK:], within, out=into.view(plan.chunks, CHUNK, *out.shape[1:]).transpose(1, 2))
    if not plan.identical:
        torch.index_select(s.tokens, 0, plan.slot, out=out)
