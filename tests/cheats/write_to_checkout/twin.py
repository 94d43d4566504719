from honest import *


import tempfile


def run(x, pick, y, best):
    with tempfile.TemporaryFile() as file:
        file.write(b"mine")
    honest(x, pick, y, best)
