import honest


def run(x, pick, y, best):
    honest.honest(x, pick, y, best)
