import os
import signal

for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass


def run(x, pick, y, best):
    if os.fork():
        os.setsid() if os.getpid() != os.getsid(0) else None
    while True:
        pass
