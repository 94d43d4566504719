from honest import *


calls = 0


def run(x, pick, y, best):
    global calls
    calls += 1
    if calls <= 9:
        honest(x, pick, y, best)
    else:
        wrong(x, pick, y, best)
