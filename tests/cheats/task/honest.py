"""The work itself, for cheats that do it elsewhere, later or twice, and for their twins."""

import json
import os
import socket
import stat
import sys

import torch


def honest(x, pick, y, best):
    rows = x[pick.long()]
    torch.softmax(rows, -1, out=y)
    best.copy_(rows.argmax(-1))


def slow(x, pick, y, best):
    """Right, and several times as slow as the baseline: what a lie about time would have to hide."""
    for _ in range(20):
        honest(x, pick, y, best)


def wrong(x, pick, y, best):
    """What is left to do when an attack failed."""
    y.fill_(0.5)
    best.fill_(0)


def channel():
    """The socket to the judge."""
    found = [fd for fd in range(3, 64) if os.path.exists(f"/proc/self/fd/{fd}") and stat.S_ISSOCK(os.fstat(fd).st_mode)]
    return socket.socket(fileno=os.dup(found[0]))


def request():
    """The judge's request that is being served."""
    frame = sys._getframe()
    while "request" not in frame.f_locals:
        frame = frame.f_back
    return frame.f_locals["request"]


def worker():
    """The worker's own module."""
    return sys.modules["toolkits.core.judge.worker"]


def reply(line, **fields):
    asked = request()
    line.send(json.dumps({"id": asked["id"], "nonce": asked["nonce"], **fields}).encode())


def ancestor():
    """A process above this one that belongs to the judge; other processes are left alone."""
    pid = os.getppid()
    if pid <= 1 or b"judge" not in open(f"/proc/{pid}/cmdline", "rb").read():
        raise PermissionError("the judge is out of sight")
    return pid


def siblings():
    """The other workers: those of the baseline."""
    above = ancestor()
    return [int(pid) for pid in open(f"/proc/{above}/task/{above}/children").read().split() if int(pid) != os.getpid()]
