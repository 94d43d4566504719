"""One program a row, or a few rows: a loop over blocks for the sum of squares, then a scaled copy."""

import triton
import triton.language as tl
from torch import Tensor


def rmsnorm(x: Tensor, w: Tensor, eps: float, y: Tensor) -> None:
    rows, cols = x.shape
    _rows[(rows,)](x, w, y, cols, eps, BLOCK=min(triton.next_power_of_2(cols), 4096), num_warps=4)


@triton.jit
def _rows(x, w, y, cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * cols
    lane = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, cols, BLOCK):
        value = tl.load(x + row + start + lane, mask=start + lane < cols, other=0.0)
        total += value * value
    scale = 1.0 / tl.sqrt(tl.sum(total) / cols + eps)
    for start in range(0, cols, BLOCK):
        inside = start + lane < cols
        value = tl.load(x + row + start + lane, mask=inside)
        weight = tl.load(w + start + lane, mask=inside)
        tl.store(y + row + start + lane, value * scale * weight, mask=inside)
