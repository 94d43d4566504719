import torch


def run(x, pick):
    rows, y = torch.empty(x.shape), torch.empty(x.shape)
    torch.index_select(x, 0, pick, out=rows)
    torch.softmax(rows, -1, out=y)
    return y, rows.argmax(-1).int()
