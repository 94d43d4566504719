"""Keeps a Python with torch loaded and forks workers from it, so that an evaluation does not pay for the import.

    python -P -m toolkits.core.judge.zygote FD

It never runs a torch operation: a process that ever used torch's thread pool deadlocks its forks. The interpreter may
be another than the server's; it needs nothing but torch and numpy. Packets on FD: `spawn` (with the worker's channel
and the write end of its output pipe) answers with a pid; `reap` waits for a pid and answers with its wait status.
"""

import gc
import json
import os
import resource
import signal
import socket
import sys
from contextlib import suppress

import torch

from toolkits.core.judge import worker
from toolkits.core.parent import die_with_parent

MESSAGE_BYTES = 4096


def main(fd: int) -> None:
    die_with_parent()
    torch.set_num_threads(1)
    gc.freeze()
    control = socket.socket(fileno=fd)
    control.send(json.dumps({"ready": os.getpid()}).encode())
    while True:
        packet, fds, _, _ = socket.recv_fds(control, MESSAGE_BYTES, 2)
        if not packet:
            return
        request = json.loads(packet)
        if request["op"] == "spawn":
            pid = os.fork()
            if pid == 0:
                _become_worker(control, fds, request["cpu"])
            for received in fds:
                os.close(received)
            control.send(json.dumps({"pid": pid}).encode())
        else:
            control.send(json.dumps({"status": _reap(request["pid"])}).encode())


def _reap(pid: int) -> int:
    """Kill what is left of the worker's session, then collect its wait status."""
    status = 0
    with suppress(ChildProcessError):
        status = os.waitpid(pid, 0)[1]
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    return status


def _become_worker(control: socket.socket, fds: list[int], cpu: int) -> None:
    """The forked child: its own session, output into the pipe, one core, no core dumps. Never returns."""
    control.close()
    os.setsid()
    die_with_parent()
    channel, output = fds
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(null)
    os.close(output)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.sched_setaffinity(0, {cpu})
    worker.serve(socket.socket(fileno=channel))
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
