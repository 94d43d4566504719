"""The room a worker runs in: a box of namespaces held open by an idle process, or, where none can be had, a folder.

A box is built by bubblewrap ahead of time. Its first process ends with the box, and the kernel ends all others then.
"""

import json
import os
import select
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

from toolkits.core.errors import HarnessError
from toolkits.core.parent import children
from toolkits.core.process import start_child
from toolkits.core.sandbox import enclosed

READY_TIMEOUT_S = 10.0
CLOSE_TIMEOUT_S = 5.0


class Box:
    """Namespaces with nothing in them but an idle `cat`, which answers once the box is built."""

    home = "/tmp"

    def __init__(self, bwrap: str, visible: list[str], hidden: list[str]) -> None:
        read_end, write_end = os.pipe()
        command = enclosed(bwrap, ["cat"], visible=visible, hidden=hidden)
        command[1:1] = ["--info-fd", str(write_end)]
        self._process = start_child(
            command,
            env={"PATH": os.defpath},
            pass_fds=[write_end],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        os.close(write_end)
        self._info = read_end
        self._first = 0
        assert self._process.stdin
        with suppress(BrokenPipeError):
            self._process.stdin.write(b"\n")
            self._process.stdin.flush()

    def entrance(self) -> int:
        """A descriptor to join the box with; waits until it is built."""
        assert self._process.stdout and self._process.stderr
        answered = select.select([self._process.stdout], [], [], READY_TIMEOUT_S)[0]
        if not answered or not os.read(self._process.stdout.fileno(), 1):
            self._process.kill()
            raise HarnessError(f"the sandbox cannot be built: {self._process.stderr.read(2000).decode()}")
        self._first = int(json.loads(os.read(self._info, 4096))["child-pid"])
        return os.pidfd_open(self._first)

    def alive(self) -> bool:
        """False once it was ended by someone else."""
        return self._process.poll() is None

    def strays(self) -> set[int]:
        """Processes in the box whose parent has ended."""
        return children(self._first)

    def close(self) -> None:
        """End all that is in the box; its builder ends when the kernel has seen the last of them dead."""
        if self._first:
            with suppress(ProcessLookupError):
                os.kill(self._first, 9)
        else:
            self._process.kill()
        # It waits for every zombie; one whose parent, the zygote, was killed is for the machine's init to collect.
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(CLOSE_TIMEOUT_S)
        os.close(self._info)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream:
                with suppress(BrokenPipeError):
                    stream.close()


class Folder:
    """A private working folder, for a machine without boxes."""

    def __init__(self, owner: int | None) -> None:
        self.home = tempfile.mkdtemp(prefix="kernel-lab-")
        if owner is not None:
            os.chown(self.home, owner, owner)

    def strays(self) -> set[int]:
        return set()

    def close(self) -> None:
        shutil.rmtree(Path(self.home), ignore_errors=True)
