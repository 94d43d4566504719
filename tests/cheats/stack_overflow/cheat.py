def run(x, pick, y, best):
    run(x, pick, y, best)
