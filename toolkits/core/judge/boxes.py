"""The room a worker runs in: a box of namespaces held open by an idle process, or, where none can be had, a folder.

A box is built by bubblewrap ahead of time. Its first process ends with the box, and the kernel ends all others then.
"""

import json
import os
import select
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from toolkits.core.errors import HarnessError
from toolkits.core.parent import children
from toolkits.core.process import start_child
from toolkits.core.sandbox import enclosed

READY_TIMEOUT_S = 10.0
CLOSE_TIMEOUT_S = 5.0
IN_MEMORY = ("/tmp", "/dev/shm")
INODE_BYTES = 1024
"""What the kernel keeps of a file that is empty."""


@contextmanager
def any_core() -> Generator[None]:
    """What is started here may run where this process's parent may: the core that is timed on has other work."""
    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, os.sched_getaffinity(os.getppid()))
    try:
        yield
    finally:
        os.sched_setaffinity(0, own)


class Box:
    """Namespaces with nothing in them but an idle `cat`, which answers once the box is built."""

    home = "/tmp"

    def __init__(self, bwrap: str, visible: list[str], hidden: list[str], nodes: list[str]) -> None:
        read_end, write_end = os.pipe()
        command = enclosed(bwrap, ["cat"], visible=visible, hidden=hidden, nodes=nodes)
        command[1:1] = ["--as-pid-1", "--info-fd", str(write_end)]
        with any_core():
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

    def stored(self) -> dict[str, tuple[int, int]]:
        """Of each folder in memory that a solution may write to, how many bytes are taken, and how many are free."""
        found: dict[str, tuple[int, int]] = {}
        for folder in IN_MEMORY:
            with suppress(OSError):
                seen = os.statvfs(f"/proc/{self._first}/root{folder}")
                taken = (seen.f_blocks - seen.f_bfree) * seen.f_frsize + (seen.f_files - seen.f_ffree) * INODE_BYTES
                found[folder] = (taken, seen.f_bavail * seen.f_frsize)
        return found

    def end(self) -> None:
        """Kill all that is in the box; `close` waits for their end."""
        if self._first:
            with suppress(ProcessLookupError):
                os.kill(self._first, 9)
        else:
            self._process.kill()

    def close(self) -> None:
        """End all that is in the box; its builder ends when the kernel has seen the last of them dead."""
        self.end()
        # It waits for every zombie; one whose parent, the zygote, was killed is for the machine's init to collect.
        ended = os.pidfd_open(self._process.pid)
        if select.select([ended], [], [], CLOSE_TIMEOUT_S)[0]:
            self._process.wait()
        os.close(ended)
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

    def stored(self) -> dict[str, tuple[int, int]]:
        return {}

    def end(self) -> None:
        pass

    def close(self) -> None:
        shutil.rmtree(Path(self.home), ignore_errors=True)
