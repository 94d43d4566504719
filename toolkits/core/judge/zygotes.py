"""The judge's handle on its zygote: start it, have it fork workers, collect what became of them."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from toolkits.core.errors import HarnessError
from toolkits.core.process import start_child

MESSAGE_BYTES = 4096
START_TIMEOUT_S = 120.0


class Zygote:
    """A started zygote process and its control channel."""

    def __init__(self, python: str, cpu: int) -> None:
        self.cpu = cpu
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [python, "-P", "-m", "toolkits.core.judge.zygote", str(theirs.fileno())]
        self._process = start_child(command, env=_environment(python), pass_fds=[theirs.fileno()])
        theirs.close()
        self._control = ours
        self._control.settimeout(START_TIMEOUT_S)
        if "ready" not in self._receive():
            raise HarnessError(f"{python} cannot run the judge's worker: it needs torch and numpy")

    def fork(self, channel: socket.socket, output: int) -> int:
        request = json.dumps({"op": "spawn", "cpu": self.cpu}).encode()
        socket.send_fds(self._control, [request], [channel.fileno(), output])
        return int(self._receive()["pid"])

    def reap(self, pid: int) -> int:
        """Wait status of a worker that has been killed or has ended."""
        self._control.send(json.dumps({"op": "reap", "pid": pid}).encode())
        return int(self._receive()["status"])

    def _receive(self) -> dict[str, Any]:
        packet = self._control.recv(MESSAGE_BYTES)
        return json.loads(packet) if packet else {}

    def close(self) -> None:
        self._control.close()
        self._process.kill()
        self._process.wait()


def _environment(python: str) -> dict[str, str]:
    """Built from nothing: a candidate inherits it. Another interpreter is shown where this package lies."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    source = {} if python == sys.executable else {"PYTHONPATH": str(Path(__file__).parents[3])}
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", **source, **threads}


def start_zygote(python: str, cpu: int) -> Zygote:
    """A zygote, or a HarnessError that says what is missing."""
    try:
        return Zygote(python, cpu)
    except (OSError, subprocess.SubprocessError) as error:
        raise HarnessError(
            f"cannot start the judge's worker with {python}: {error}; is it the right Python?"
        ) from error


def default_cpu() -> int:
    """The core that candidate and baseline share: the last one allowed, since the first is busiest with interrupts."""
    return max(os.sched_getaffinity(0))
