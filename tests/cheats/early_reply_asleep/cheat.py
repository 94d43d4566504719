from honest import *


import time

line = None


def run(x, pick, y, best):
    global line
    line = line or channel()
    reply(line, cpu_ns=1)
    time.sleep(0.002)
    honest(x, pick, y, best)
