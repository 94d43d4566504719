from honest import *


def run(x, pick, y, best):
    honest(x, pick, y, best)
    y.fill_(-float("nan"))
