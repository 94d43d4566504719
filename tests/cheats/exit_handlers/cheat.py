from honest import *


import atexit


class Later:
    def __init__(self, *arguments):
        self.arguments = arguments

    def __del__(self):
        honest(*self.arguments)


kept = []


def run(x, pick, y, best):
    atexit.register(honest, x, pick, y, best)
    kept.append(Later(x, pick, y, best))
