import torch

mine = torch.Generator().manual_seed(7)


def run(x, pick, y, best):
    order = torch.randperm(len(pick), generator=mine)
    rows = x[pick[order].long()]
    y[order] = rows.softmax(-1)
    best[order] = rows.argmax(-1).int()
