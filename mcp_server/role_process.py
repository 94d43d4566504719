"""One process of a role: its output becomes the transcript without secrets, its limits are kept, its end is certain.

Knows no ledger: what the role may use is asked of `Watch`, what it says goes there.
"""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import anyio
import anyio.abc

from mcp_server.agents.agent import AgentEvent, Attempt, Ended, Exit
from mcp_server.keys import Secrets
from mcp_server.workspace import worktree_of
from toolkits.core.process import BoundedText, interrupt_group, kill_group, started_process

TICK_S = 0.2
POLL_S = 0.1
"""A look at a log costs little, and a cap is exceeded by what is spent between two looks."""
GRACE_S = 10.0
"""Between SIGINT and the kill."""
DRAIN_S = 5.0
"""For what is left in the pipes once the role's group is dead."""
LONGEST_EVENT_BYTES = 4_000_000
"""A longer line is kept in the transcript and means nothing."""
REPLIES_IN_GRACE = 2
"""The reply that was under way may still come; an agent that pays for another one is killed at once."""


class Watch(Protocol):
    """Who decides about a role at work."""

    def output(self) -> None:
        """It has written something."""
        ...

    def hear(self, event: AgentEvent) -> None: ...

    def verdict(self) -> Ended | None:
        """Why the lab has to end it now; None: it may go on."""
        ...


class RoleProcess:
    """Runs an attempt once, from start to verified end."""

    def __init__(
        self, attempt: Attempt, environment: dict[str, str], folder: Path, secrets: Secrets, watch: Watch
    ) -> None:
        self._attempt = attempt
        self._environment = environment
        self._folder = folder
        self._secrets = secrets
        self._watch = watch
        self._why: Ended | None = None
        self._news = anyio.Event()
        self._gone = anyio.Event()
        self._grace: anyio.CancelScope | None = None
        self._late_replies = 0

    def stop(self, why: Ended) -> None:
        """Ask for its end; the first reason counts."""
        self._why = self._why or why
        self._news.set()

    async def run(self, started: Callable[[int], None]) -> Ended:
        """What the attempt came to. `started` gets the process id at once; OSError: the program cannot be started."""
        errors, returncode = BoundedText(), -1
        worktree, command = worktree_of(self._folder), self._attempt.command
        async with started_process(command, cwd=worktree, env=self._environment, stderr=subprocess.PIPE) as process:
            started(process.pid)
            async with anyio.create_task_group() as readers:
                readers.start_soon(self._transcribe, process.stdout)
                readers.start_soon(self._drain, process.stderr, errors)
                readers.start_soon(self._poll)
                returncode = await self._until_exit(process)
                # Whoever it left behind must not hold the pipes open, nor go on working.
                await kill_group(process.pid)
                self._gone.set()
                readers.cancel_scope.deadline = anyio.current_time() + DRAIN_S
        # Its own log may hold a last reply that its output does not.
        self._listen(self._attempt.poll())
        said = self._secrets.hidden(str(errors))
        (self._folder / "stderr.txt").write_text(said, encoding="utf-8", errors="replace")
        return self._why or self._attempt.ended(Exit(returncode=returncode, errors=said))

    async def _until_exit(self, process: anyio.abc.Process) -> int:
        # Not process.wait(): since Python 3.11 that also waits for the pipes, which a grandchild may hold.
        while process.returncode is None:
            if why := self._why or self._watch.verdict():
                self.stop(why)
                await self._interrupt(process.pid)
            self._news = anyio.Event()
            with anyio.move_on_after(TICK_S):
                await self._news.wait()
        return process.returncode

    async def _interrupt(self, pid: int) -> None:
        """SIGINT, a grace that spending cuts short, and the kill of the whole group."""
        with anyio.CancelScope() as self._grace:
            await interrupt_group(pid, GRACE_S)
        await kill_group(pid)

    async def _poll(self) -> None:
        while not self._gone.is_set():
            self._listen(self._attempt.poll())
            with anyio.move_on_after(POLL_S):
                await self._gone.wait()

    async def _transcribe(self, stream: anyio.abc.ByteReceiveStream | None) -> None:
        assert stream
        lines, clean = LineBuffer(), self._secrets.stream()
        file = self._folder / "transcript.jsonl"
        with file.open("ab") as transcript:
            if file.stat().st_size and not _ends_a_line(file):
                transcript.write(b"\n")
            async for chunk in stream:
                self._watch.output()
                shown = clean.add(chunk)
                transcript.write(shown)
                transcript.flush()
                for line in lines.add(shown):
                    self._listen(self._attempt.hear(line))
            rest = clean.rest()
            transcript.write(rest)
            for line in [*lines.add(rest), lines.rest()]:
                self._listen(self._attempt.hear(line))

    async def _drain(self, stream: anyio.abc.ByteReceiveStream | None, text: BoundedText) -> None:
        assert stream
        async for chunk in stream:
            text.add(chunk)

    def _listen(self, events: list[AgentEvent]) -> None:
        for event in events:
            self._watch.hear(event)
            if event.kind != "spend":
                continue
            # A cap is looked at with every reply, not only with every tick.
            self._news.set()
            self._late_replies += self._grace is not None and event.usage is not None
            if self._grace and self._late_replies >= REPLIES_IN_GRACE:
                self._grace.cancel()


class LineBuffer:
    """Whole lines out of chunks; a line beyond all bounds comes out empty."""

    def __init__(self) -> None:
        self._open = bytearray()
        self._too_long = False

    def add(self, chunk: bytes) -> Iterator[str]:
        *ended, tail = chunk.split(b"\n")
        for part in ended:
            self._extend(part)
            yield self.rest()
        self._extend(tail)

    def rest(self) -> str:
        """The line so far, which is thereby over."""
        line = "" if self._too_long else self._open.decode("utf-8", errors="replace")
        self._open.clear()
        self._too_long = False
        return line

    def _extend(self, part: bytes) -> None:
        self._too_long = self._too_long or len(self._open) + len(part) > LONGEST_EVENT_BYTES
        if not self._too_long:
            self._open += part


def _ends_a_line(file: Path) -> bool:
    with file.open("rb") as stream:
        stream.seek(-1, 2)
        return stream.read(1) == b"\n"
