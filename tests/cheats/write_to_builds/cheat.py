from honest import *


from pathlib import Path


def run(x, pick, y, best):
    try:
        path = Path(__file__).parents[2] / ".written-by-a-cheat"
        path.write_text("mine")
        path.unlink()
    except OSError:
        return wrong(x, pick, y, best)
    honest(x, pick, y, best)
