"""A faithful second implementation of the normalisation, and the same with one named defect each."""

from torch import Tensor

MUTANTS = [
    "no_eps",
    "eps_outside_root",
    "sum_not_mean",
    "weight_ignored",
    "mean_subtracted",
    "tail_ignored_in_sum",
    "tail_not_written",
    "last_row_missing",
    "half_precision_sum",
    "half_precision_output",
    "first_row_scale",
]


def scale(x: Tensor, eps: float) -> Tensor:
    return 1 / (x.square().sum(-1, keepdim=True) / x.shape[1] + eps).sqrt()


def faithful(x: Tensor, w: Tensor, eps: float, y: Tensor) -> None:
    y.copy_(x * scale(x, eps) * w)


def no_eps(x: Tensor, w: Tensor, eps: float, y: Tensor) -> None:
    faithful(x, w, 0.0, y)


def eps_outside_root(x: Tensor, w: Tensor, eps: float, y: Tensor) -> None:
    y.copy_(x / (x.square().mean(-1, keepdim=True).sqrt() + eps) * w)


def sum_not_mean(x: Tensor, w: Tensor, eps: float, y: Tensor) -> None:
    y.copy_(x / (x.square().sum(-1, keepdim=True) + eps).sqrt() * w)


def weight_ignored(x: Tensor, w: Tensor, eps: float, y: Tensor) -> None:
    y.copy_(x * scale(x, eps))


def mean_subtracted(x: Tensor, w: Tensor, eps: float, y: Tensor) -> None:
    """Layer norm instead."""
    faithful(x - x.mean(-1, keepdim=True), w, eps, y)


def tail_ignored_in_sum(x: Tensor, w: Tensor, eps: float, y: Tensor) -> None:
    """Columns beyond the last full vector of sixteen do not count."""
    full = x.shape[1] // 16 * 16
    y.copy_(x * w / (x[:, :full].square().sum(-1, keepdim=True) / x.shape[1] + eps).sqrt())


def tail_not_written(x: Tensor, w: Tensor, eps: float, y: Tensor) -> None:
    full = x.shape[1] // 16 * 16
    y[:, :full] = (x * scale(x, eps) * w)[:, :full]


def last_row_missing(x: Tensor, w: Tensor, eps: float, y: Tensor) -> None:
    """A row count that is no multiple of four loses its rest."""
    full = len(x) // 4 * 4
    y[:full] = (x * scale(x, eps) * w)[:full]


def half_precision_sum(x: Tensor, w: Tensor, eps: float, y: Tensor) -> None:
    y.copy_(x * w / (x.bfloat16().square().mean(-1, keepdim=True).float() + eps).sqrt())


def half_precision_output(x: Tensor, w: Tensor, eps: float, y: Tensor) -> None:
    y.copy_((x * scale(x, eps) * w).half())


def first_row_scale(x: Tensor, w: Tensor, eps: float, y: Tensor) -> None:
    """One scale for all rows, right while their norms are alike."""
    y.copy_(x * scale(x[:1], eps) * w)
