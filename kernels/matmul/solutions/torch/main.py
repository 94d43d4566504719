"""The matrix product by oneDNN, which uses the widest vectors of any maker's CPU; the BLAS behind mm may not."""

import torch
from torch import Tensor


def matmul(a: Tensor, b: Tensor, out: Tensor) -> None:
    if torch.backends.mkldnn.is_available():
        out.copy_(torch.ops.mkldnn._linear_pointwise(a, b.T, None, "none", [], ""))
    else:
        torch.mm(a, b, out=out)
