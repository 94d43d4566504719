import torch


def run(x, pick):
    rows = x[pick.long()]
    return torch.zeros(x.shape).to_sparse(), rows.argmax(-1).int()
