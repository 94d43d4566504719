from honest import *


def run(x, pick, y, best):
    x.exp_()
    honest(x, pick, y, best)
