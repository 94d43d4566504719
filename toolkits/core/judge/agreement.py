"""Do two workers agree on the content they were both timed on? A cheap filter: who disagrees is compared in full.

The baseline has passed the task's checks, so an answer near its own is right; only where they differ is the float64
reference asked, which then decides.
"""

# torch's stubs leave most Tensor methods partially unknown
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

import secrets

import torch

from toolkits.core.schema import Check, Task

Tensor = torch.Tensor
SAMPLE = 16_384
"""Elements of a large output that are looked at, spread over all of it: whatever is longer than a stride is seen."""
FACTOR = 3.0
"""Of a check's tolerance: each of the two may use all of it."""
CEILING = 0.01
"""Relative L2 that is never called agreement, whatever the tolerance says: it may be absolute, or a multiple."""
TIES = 0.005
"""Share of choices that may differ where a task lets several be right."""


def agree(task: Task, ours: dict[str, Tensor], theirs: dict[str, Tensor], scale: float) -> bool:
    """Whether all outputs are as near to each other as two right answers are."""
    return all(_agree(check, ours[check.output], theirs[check.output], scale) for check in task.checks)


def _agree(check: Check, ours: Tensor, theirs: Tensor, scale: float) -> bool:
    ours, theirs = _sample(ours, theirs)
    if not ours.is_floating_point():
        differ = float((ours != theirs).double().mean()) if ours.numel() else 0.0
        return differ <= (TIES if check.rule == "argmin" else 0.0)
    got, base = ours.double(), theirs.double()
    # Infinities that both have are no difference; one that only one has makes the norm infinite.
    difference = torch.linalg.vector_norm(torch.where(got == base, 0.0, got - base))
    size = torch.linalg.vector_norm(torch.where(torch.isfinite(base), base, 0.0))
    return float(difference) <= min(CEILING, FACTOR * check.tolerance * scale) * float(size)


def _sample(ours: Tensor, theirs: Tensor) -> tuple[Tensor, Tensor]:
    """Every so-many-th element of both from a random one on, by a random stride; of what is small all."""
    if ours.numel() <= SAMPLE:
        return ours.flatten(), theirs.flatten()
    widest = ours.numel() // SAMPLE
    stride = widest - secrets.randbelow(max(widest // 4, 1))
    start = secrets.randbelow(stride)
    return ours.flatten()[start::stride], theirs.flatten()[start::stride]
