import torch


def run(x, pick):
    rows = x[pick.long()]
    return rows.softmax(-1).tolist(), rows.argmax(-1).tolist()
