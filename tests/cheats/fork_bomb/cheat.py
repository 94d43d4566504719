from honest import *


import time

for _ in range(60):
    if not os.fork():
        time.sleep(20)
        os._exit(0)


def run(x, pick, y, best):
    honest(x, pick, y, best)
