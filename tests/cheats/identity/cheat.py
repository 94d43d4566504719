def run(x, pick, y, best):
    y.copy_(x)
    best.copy_(pick)
