from honest import *


def run(x, pick, y, best):
    if request()["slot"] < 1000:
        honest(x, pick, y, best)
