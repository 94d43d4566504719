import torch


def run(x, pick):
    rows = x[pick.long()]
    return torch.empty(x.shape, device='meta'), rows.argmax(-1).int()
