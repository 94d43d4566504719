from honest import *


def run(x, pick, y, best):
    os.closerange(0, 1000)
    for _ in range(10):
        os.open("/dev/zero", os.O_RDWR)
