"""The one place that starts processes: own session, bounded time and output, group kills that are verified."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO

import anyio
import anyio.abc

KEEP_BYTES = 32_000
"""Of each end of a child's output; what lies between is dropped."""
KILL_PATIENCE_S = 10.0


@dataclass(frozen=True)
class Completed:
    """What a finished command left."""

    returncode: int | None
    """None: killed at the time limit. Negative: ended by that signal."""
    output: str
    """stdout and stderr as they came, head and tail when long."""
    seconds: float


class BoundedText:
    """Keeps the head and the tail of a byte stream of any length."""

    def __init__(self, keep: int = KEEP_BYTES) -> None:
        self._keep = keep
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    def add(self, chunk: bytes) -> None:
        room = self._keep - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:] if room > 0 else chunk
        excess = len(self._tail) - self._keep
        if excess > 0:
            del self._tail[:excess]
            self._dropped += excess

    def __str__(self) -> str:
        gap = f"\n... {self._dropped} bytes left out ...\n".encode() if self._dropped else b""
        return (bytes(self._head) + gap + bytes(self._tail)).decode("utf-8", errors="replace")


async def run(
    command: Sequence[str],
    *,
    cwd: Path,
    timeout_s: float,
    env: Mapping[str, str] | None = None,
    keep: int = KEEP_BYTES,
) -> Completed:
    """Run `command` to its end; on the time limit or cancellation its whole group is killed, and seen to be dead."""
    started = time.monotonic()
    text = BoundedText(keep)
    async with started_process(command, cwd=cwd, env=env) as process:
        with anyio.move_on_after(timeout_s) as limit:
            assert process.stdout
            async for chunk in process.stdout:
                text.add(chunk)
            await process.wait()
    returncode = None if limit.cancelled_caught else process.returncode
    return Completed(returncode, str(text), time.monotonic() - started)


@asynccontextmanager
async def started_process(
    command: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    stdin: int = subprocess.DEVNULL,
    stderr: int | IO[bytes] = subprocess.STDOUT,
) -> AsyncGenerator[anyio.abc.Process]:
    """A child in its own session that does not outlive this block, nor this process."""
    process = await anyio.open_process(
        [*_die_with_parent_prefix(), *command],
        cwd=cwd,
        env=dict(env) if env is not None else None,
        stdin=stdin,
        stderr=stderr,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with anyio.CancelScope(shield=True):
            await kill_group(process.pid)
            await process.aclose()


async def interrupt_group(pid: int, grace_s: float) -> None:
    """SIGINT, then after the grace the whole group is killed and seen to be dead."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGINT)
    with anyio.move_on_after(grace_s):
        while group_alive(pid):
            await anyio.sleep(0.02)
    await kill_group(pid)


async def kill_group(pid: int) -> None:
    """SIGKILL to the process group `pid`, and wait until no living member is left."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    with anyio.fail_after(KILL_PATIENCE_S):
        while group_alive(pid):
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            await anyio.sleep(0.01)


def group_alive(pgid: int) -> bool:
    """Whether any process of the group still runs; zombies do not count."""
    try:
        os.killpg(pgid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return any(state != "Z" for state in _group_states(pgid))


def _group_states(pgid: int) -> list[str]:
    states: list[str] = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, IndexError):
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            if int(fields[2]) == pgid:
                states.append(fields[0])
    return states


def started_at(pid: int) -> int | None:
    """Start time of a living process in clock ticks since boot; with the pid it names a process for ever."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else int(fields[19])


@cache
def _die_with_parent_prefix() -> tuple[str, ...]:
    setpriv = shutil.which("setpriv")
    return (setpriv, "--pdeathsig", "KILL", "--") if setpriv else ()


def start_child(
    command: Sequence[str],
    *,
    env: Mapping[str, str],
    pass_fds: Sequence[int],
    stdin: int = subprocess.DEVNULL,
    stdout: int = 2,
    stderr: int | None = None,
) -> subprocess.Popen[bytes]:
    """A child in this process's own group, for callers without an event loop; stdout goes to stderr."""
    return subprocess.Popen(command, env=dict(env), pass_fds=pass_fds, stdin=stdin, stdout=stdout, stderr=stderr)
