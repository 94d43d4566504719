from honest import *


os.environ["OMP_SCHEDULE"] = "static"


def run(x, pick, y, best):
    honest(x, pick, y, best)
