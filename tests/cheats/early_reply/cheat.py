from honest import *


line = None


def run(x, pick, y, best):
    global line
    line = line or channel()
    reply(line, cpu_ns=1)
    slow(x, pick, y, best)
