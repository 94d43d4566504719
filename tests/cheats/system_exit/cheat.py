def run(x, pick, y, best):
    raise (SystemExit if len(pick) == 7 else KeyboardInterrupt)(0)
