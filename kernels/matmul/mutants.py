"""A faithful second implementation of the matrix product, and the same with one named defect each."""

from torch import Tensor

MUTANTS = [
    "left_transposed",
    "right_transposed",
    "depth_tail_dropped",
    "last_rows_missing",
    "last_cols_missing",
    "added_to_output",
    "half_precision_factors",
    "ten_bit_mantissa",
    "half_precision_sum",
    "first_depth_block_only",
]

TILE = 32


def faithful(a: Tensor, b: Tensor, out: Tensor) -> None:
    """Partial products added up along the depth."""
    out.zero_()
    for k in range(0, len(b), TILE):
        out += a[:, k : k + TILE] @ b[k : k + TILE]


def left_transposed(a: Tensor, b: Tensor, out: Tensor) -> None:
    """The left factor read as if it were column-major."""
    faithful(a.reshape(a.shape[1], a.shape[0]).T, b, out)


def right_transposed(a: Tensor, b: Tensor, out: Tensor) -> None:
    """The right factor read as if it were column-major."""
    faithful(a, b.reshape(b.shape[1], b.shape[0]).T, out)


def depth_tail_dropped(a: Tensor, b: Tensor, out: Tensor) -> None:
    """A depth that is no multiple of four loses its rest."""
    full = a.shape[1] // 4 * 4
    faithful(a[:, :full], b[:full], out)


def last_rows_missing(a: Tensor, b: Tensor, out: Tensor) -> None:
    full = len(a) // 2 * 2
    faithful(a[:full], b, out[:full])


def last_cols_missing(a: Tensor, b: Tensor, out: Tensor) -> None:
    full = b.shape[1] // 8 * 8
    faithful(a, b[:, :full], out[:, :full])


def added_to_output(a: Tensor, b: Tensor, out: Tensor) -> None:
    """What was in the output before is not overwritten."""
    out += a @ b


def half_precision_factors(a: Tensor, b: Tensor, out: Tensor) -> None:
    faithful(a.bfloat16().float(), b.bfloat16().float(), out)


def ten_bit_mantissa(a: Tensor, b: Tensor, out: Tensor) -> None:
    """What TF32 hardware does to both factors."""
    faithful(_ten_bits(a), _ten_bits(b), out)


def half_precision_sum(a: Tensor, b: Tensor, out: Tensor) -> None:
    """Partial sums kept in half precision between blocks of the depth."""
    total = out.new_zeros(out.shape).bfloat16()
    for k in range(0, len(b), TILE):
        total = (total + a[:, k : k + TILE] @ b[k : k + TILE]).bfloat16()
    out.copy_(total)


def first_depth_block_only(a: Tensor, b: Tensor, out: Tensor) -> None:
    faithful(a[:, :TILE], b[:TILE], out)


def _ten_bits(values: Tensor) -> Tensor:
    """Split off the thirteen lowest mantissa bits by adding and subtracting a multiple (Veltkamp)."""
    large = values * (2.0**13 + 1)
    return large - (large - values)
