"""Do two workers agree on the content they were both timed on? A cheap filter: who disagrees is compared in full.

The baseline has passed the task's checks, so an answer near its own is right; only where they differ is the float64
reference asked, which then decides. A random quarter of the rows is looked at, in float32, all of what is small.
"""

# torch's stubs leave most Tensor methods partially unknown
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

import math

import torch

from toolkits.core.judge.inputs import secret_generator
from toolkits.core.schema import Check, Task

Tensor = torch.Tensor
_SECRET = secret_generator()
CEILING = 0.01
"""Relative L2 that is never called agreement, whatever the tolerance says: it may be absolute, or a multiple."""
WHOLE = 1 << 16
"""Elements up to which all rows are looked at."""
LOOKED_AT = 0.25
"""Share of the rows of what is larger, chosen anew each time: what pays to leave out is more than a few of them."""
TIES = 0.0005
"""Share of choices that may differ where a task lets several be right."""


def agree(task: Task, ours: dict[str, Tensor], theirs: dict[str, Tensor], scale: float) -> bool:
    """Whether all outputs are as near to each other as one may be to the truth."""
    return all(_agree(check, ours[check.output], theirs[check.output], scale) for check in task.checks)


def _agree(check: Check, ours: Tensor, theirs: Tensor, scale: float) -> bool:
    if not ours.numel():
        return True
    if not ours.is_floating_point():
        return _same_choices(check, ours, theirs)
    error, norm = _rows(ours, theirs)
    allowed = min(CEILING, check.tolerance * scale)
    # A row is held to it as well: what is wrong in few of them disappears in the norm of all.
    floor = 0.1 * norm.median()
    near = bool((error <= allowed * torch.maximum(norm, floor)).all())
    return near and float(torch.linalg.vector_norm(error)) <= allowed * float(torch.linalg.vector_norm(norm))


def _same_choices(check: Check, ours: Tensor, theirs: Tensor) -> bool:
    if check.rule != "argmin":
        return torch.equal(ours, theirs)
    if int(ours.min()) < int(theirs.min()) or int(ours.max()) > int(theirs.max()):
        return False
    return float((ours != theirs).float().mean()) <= TIES


def _rows(ours: Tensor, theirs: Tensor) -> tuple[Tensor, Tensor]:
    """Norms of the difference and of `theirs` along the last axis; infinities that both have are no difference."""
    if ours.dim() > 1 and ours.numel() > WHOLE:
        ours, theirs = _some(ours, theirs)
    wide = torch.float64 if ours.dtype is torch.float64 else torch.float32
    got, base = ours.to(wide), theirs.to(wide)
    difference = got - base
    error, norm = _norms(difference), _norms(base)
    if bool(torch.isfinite(norm.sum())):
        return error, norm
    difference = torch.where(got == base, 0.0, difference)
    return _norms(difference), _norms(torch.where(torch.isfinite(base), base, 0.0))


def _some(ours: Tensor, theirs: Tensor) -> tuple[Tensor, Tensor]:
    """The same random rows of both; which, no candidate can know."""
    ours, theirs = ours.flatten(0, -2), theirs.flatten(0, -2)
    count = len(ours)
    picks = torch.randint(count, (math.ceil(LOOKED_AT * count),), generator=_SECRET)
    return ours[picks], theirs[picks]


def _norms(rows: Tensor) -> Tensor:
    return torch.linalg.vector_norm(rows, dim=-1).flatten() if rows.dim() else rows.abs().flatten()
