def run(x, pick):
    return x, pick
