import torch


def run(x, pick):
    return torch.empty(x.shape), torch.empty(len(pick), dtype=torch.int32)
