from honest import *


import threading


def run(x, pick, y, best):
    thread = threading.Thread(target=honest, args=(x, pick, y, best))
    thread.start()
    thread.join()
