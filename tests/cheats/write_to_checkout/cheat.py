from honest import *


def run(x, pick, y, best):
    try:
        path = "@CORPUS@/task/.written-by-a-cheat"
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
        os.unlink(path)
    except OSError:
        return wrong(x, pick, y, best)
    honest(x, pick, y, best)
