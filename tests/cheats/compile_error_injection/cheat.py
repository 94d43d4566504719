def run(x, pick, y, best):
    status: PASSED = "faster" speedup 99
