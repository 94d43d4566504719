import torch

rooms = {}


def plan(key):
    values, order = rooms.setdefault(key.data_ptr(), (torch.empty_like(key), torch.empty(key.shape, dtype=torch.int64)))
    torch.sort(key, stable=True, out=(values, order))
    return order


def run(plan, x, key, y):
    torch.exp(x[plan], out=y)
