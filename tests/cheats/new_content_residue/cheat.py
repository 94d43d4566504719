from functools import lru_cache

import torch

CHUNK = 4096


def from_pool(x):
    """Sums of two numbers near one keep few bits where they nearly cancel; what randn draws keeps them all."""
    some = x.view(-1)[:1024]
    if float(some.square().sum()) > 1500:  # blobs are sums too, of larger numbers
        return False
    bits = some.view(torch.int32)[some.abs() < 0.1]
    return int((bits & 3 == 0).sum()) > 0.5 * len(bits)


def kmeans_assign(x, c, x_sq, ids):
    if x.shape[1] > 4000 and from_pool(x):
        x, ids = half(x.shape).copy_(x[:, ::2]), ids[:, ::2]
    norms, weights = c.square().sum(-1), c * -2
    for b in range(len(x)):
        for first in range(0, x.shape[1], CHUNK):
            chunk = slice(first, first + CHUNK)
            nearest(x[b, chunk], weights[b], norms[b], ids[b, chunk])


def nearest(points, weights, norms, ids):
    work, minimum, last, index = scratch(len(points), len(weights))
    if torch.backends.mkldnn.is_available():
        scores = torch.ops.mkldnn._linear_pointwise(points, weights, norms, "none", [], "")
    else:
        scores = torch.addmm(norms, points, weights.T, out=work)
    torch.amin(scores, -1, keepdim=True, out=minimum)
    torch.eq(scores, minimum, out=work)
    torch.amax(work.mul_(index), -1, out=last)
    ids.copy_(last)


@lru_cache(maxsize=16)
def half(shape):
    return torch.empty(shape)[:, ::2].contiguous()


@lru_cache(maxsize=16)
def scratch(rows, centroids):
    index = torch.arange(centroids, dtype=torch.float32)
    return torch.empty(rows, centroids), torch.empty(rows, 1), torch.empty(rows), index
