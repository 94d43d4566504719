from honest import *


import time


def run(x, pick, y, best):
    started = time.perf_counter()
    honest(x, pick, y, best)
    print("took", time.perf_counter() - started, time.process_time_ns())
