from honest import *


import subprocess

subprocess.Popen([sys.executable, "-S", "-c", "import time\nend = time.time() + 20\nwhile time.time() < end: pass"])


def run(x, pick, y, best):
    honest(x, pick, y, best)
