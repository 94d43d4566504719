import time


def run(x, pick, y, best):
    time.sleep(1e6)
