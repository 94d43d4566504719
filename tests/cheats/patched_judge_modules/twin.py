from honest import *


def run(x, pick, y, best):
    kept = torch.softmax
    torch.softmax = lambda *a, **k: kept(*a, **k)
    honest(x, pick, y, best)
    torch.softmax = kept
