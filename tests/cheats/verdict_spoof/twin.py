from honest import *


def run(x, pick, y, best):
    honest(x, pick, y, best)
    os.write(1, b"\xff\xfe{" + b"x" * 30_000 + b'"status": "FAILED"}')
