"""Keeps a Python with torch loaded and forks workers from it, so that an evaluation does not pay for the import.

    python -P -m toolkits.core.judge.zygote FD

It never runs a torch operation: a process that ever used torch's thread pool deadlocks its forks. The interpreter may
be another than the server's; it needs nothing but torch and numpy. Packets on FD: `spawn` (with the worker's channel,
the write end of its output pipe, and the box to put it into) answers with a pid; `reap` waits for a pid, ends what that
worker left running, and answers with its wait status. A worker's first packet on its channel says how its filter of
system calls went, and brings the descriptor on which the judge is asked for processes.
"""

import gc
import json
import os
import signal
import socket
import sys
from contextlib import suppress
from typing import Any

import torch

from toolkits.core.judge import confine, seccomp, worker
from toolkits.core.parent import adopt_orphans, children, die_with_parent, hide_memory

MESSAGE_BYTES = 4096


def main(fd: int) -> None:
    die_with_parent()
    hide_memory()
    adopt_orphans()
    torch.set_num_threads(1)
    gc.freeze()
    control = socket.socket(fileno=fd)
    control.send(json.dumps(confine.surroundings()).encode())
    workers: set[int] = set()
    while True:
        packet, fds, _, _ = socket.recv_fds(control, MESSAGE_BYTES, 3)
        if not packet:
            return
        request = json.loads(packet)
        if request["op"] == "spawn":
            pid = _forked(control, fds, request)
            for received in fds:
                os.close(received)
            workers.add(pid)
            control.send(json.dumps({"pid": pid}).encode())
        else:
            workers.discard(request["pid"])
            control.send(json.dumps({"status": _reap(request["pid"], workers)}).encode())


def _forked(control: socket.socket, fds: list[int], request: dict[str, Any]) -> int:
    """A new worker's pid, 0 if it could not enter its box."""
    if len(fds) == 3 and os.geteuid() != 0:
        return _forked_by_a_child(control, fds, request)
    try:
        if len(fds) == 3:
            confine.fork_into(fds[2])
    except OSError:
        return 0
    pid = os.fork()
    if pid == 0:
        if len(fds) == 3:
            confine.join_box(fds[2])
        _become_worker(control, fds, request)
    return pid


def _forked_by_a_child(control: socket.socket, fds: list[int], request: dict[str, Any]) -> int:
    """Without root only who has left for good may fork into a box: a child goes, forks the worker, and ends."""
    ours, theirs = socket.socketpair()
    between = os.fork()
    if between == 0:
        ours.close()
        confine.join_box(fds[2])
        if pid := os.fork():
            theirs.send(str(pid).encode())
            os._exit(0)
        theirs.recv(1)
        theirs.close()
        _become_worker(control, fds, request)
    theirs.close()
    pid = int(ours.recv(32) or 0)
    os.waitpid(between, 0)
    ours.close()  # the worker goes on: this process is its parent now
    return pid


def _reap(pid: int, workers: set[int]) -> int:
    """Collect the worker's wait status; whatever it started is adopted at its end, whichever session it fled to."""
    status = 0
    with suppress(ChildProcessError):
        status = os.waitpid(pid, 0)[1]
    while strays := children(os.getpid()) - workers:
        for stray in strays:
            with suppress(ProcessLookupError):
                os.kill(stray, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(stray, 0)
    return status


def _become_worker(control: socket.socket, fds: list[int], request: dict[str, Any]) -> None:
    """The forked child: its own session, output into the pipe, one core, no rights, limits, a filter. Never returns."""
    control.close()
    os.setsid()
    channel, output, *box = fds
    for fd in box:
        os.close(fd)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(null)
    os.close(output)
    os.sched_setaffinity(0, {request["cpu"]})
    os.chdir(request["home"])
    os.environ["HOME"] = os.environ["TMPDIR"] = request["home"]
    os.environ.pop("PYTHONPATH", None)
    sys.argv[:] = sys.orig_argv[:] = [""]  # they name this checkout, and a candidate need not know what runs it
    confine.take_limits(device=request["device"])
    confine.drop_rights(request["uid"], bool(box))
    die_with_parent()  # after the change of user, which clears it
    line = socket.socket(fileno=channel)
    _filter_calls(line)
    worker.serve(line)
    os._exit(0)


def _filter_calls(line: socket.socket) -> None:
    """The last of it; who listens is the judge, and the worker keeps nothing of it."""
    said, listeners = seccomp.take_filter()
    socket.send_fds(line, [json.dumps({"filter": said}).encode()], listeners)
    for listener in listeners:
        os.close(listener)
    if said != seccomp.NONE:
        seccomp.keep_descriptors()


if __name__ == "__main__":
    main(int(sys.argv[1]))
