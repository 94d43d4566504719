import torch

last = {}


def run(x, pick):
    rows = x[pick.long()]
    y, best = last.setdefault(x.shape, (torch.empty(x.shape), torch.empty(len(pick), dtype=torch.int32)))
    torch.softmax(rows, -1, out=y)
    best.copy_(rows.argmax(-1))
    return y, best
