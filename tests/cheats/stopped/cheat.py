import os
import signal


def run(x, pick, y, best):
    os.kill(os.getpid(), signal.SIGSTOP)
