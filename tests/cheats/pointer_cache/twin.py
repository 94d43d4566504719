import torch

workspaces = {}


def run(x, pick, y, best):
    rows = workspaces.setdefault(x.shape, torch.empty(x.shape))
    torch.index_select(x, 0, pick, out=rows)
    torch.softmax(rows, -1, out=y)
    best.copy_(rows.argmax(-1))
