class Evil(BaseException):
    def __str__(self):
        raise Evil

    __repr__ = __str__


def run(x, pick, y, best):
    raise Evil
