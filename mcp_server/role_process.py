"""One role's process: its output becomes the transcript, its limits are enforced, its end is told with the evidence.

Knows no ledger: what the role may use is asked of `limit`, what it says goes to `hear`.
"""

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.abc

from mcp_server.agents.agent import Agent, AgentEvent
from mcp_server.schema import RoleState
from mcp_server.workspace import worktree_of
from toolkits.core.process import BoundedText, interrupt_group, kill_group, started_process
from toolkits.core.schema import Json

TICK_S = 0.2
GRACE_S = 10.0
"""Between SIGINT and the kill."""
DRAIN_S = 5.0
"""For what is left in the pipes once the role's group is dead."""
LONGEST_EVENT_BYTES = 4_000_000
"""A longer line is kept in the transcript and means nothing."""
NOTE_CHARACTERS = 600
OUTCOMES: dict[str, RoleState] = {"done": "done", "budget": "budget", "time": "time", "stopped": "stopped"}
"""What a result line may claim; anything else is a crash."""


@dataclass(frozen=True)
class RoleExit:
    """What is known of how a process ended."""

    returncode: int
    result: AgentEvent | None
    """The last result line; a role that ends without one has crashed, whatever its exit status."""
    ended_by_lab: RoleState | None
    """Set when the lab ended it: `stopped`, `time` or `budget`."""
    errors: str
    """Its standard error, head and tail."""

    def verdict(self) -> tuple[RoleState, str]:
        """The end state, and why."""
        said = self.result.text if self.result else ""
        if self.ended_by_lab:
            return self.ended_by_lab, said or f"ended by the lab: {self.ended_by_lab}"
        how = f"exit status {self.returncode}" if self.returncode >= 0 else f"signal {-self.returncode}"
        if self.result is None:
            return "crashed", f"ended with {how} and no result line: {self.errors[-NOTE_CHARACTERS:].strip()}"
        if self.returncode != 0:
            return "crashed", f"{said or self.result.outcome} ({how})"
        return OUTCOMES.get(self.result.outcome, "crashed"), said

    def evidence(self) -> Json:
        return {
            "returncode": self.returncode,
            "result": self.result.model_dump() if self.result else None,
            "ended_by_lab": self.ended_by_lab,
        }


class RoleProcess:
    """Runs a role's command once, from start to verified end."""

    def __init__(
        self,
        agent: Agent,
        command: list[str],
        environment: dict[str, str],
        folder: Path,
        limit: Callable[[], RoleState | None],
        hear: Callable[[AgentEvent], None],
    ) -> None:
        self._agent = agent
        self._command = command
        self._environment = environment
        self._folder = folder
        self._limit = limit
        self._hear = hear
        self._result: AgentEvent | None = None
        self._why: RoleState | None = None

    def stop(self, why: RoleState) -> None:
        """Ask for its end; the first reason counts."""
        self._why = self._why or why

    async def run(self, started: Callable[[int], None]) -> RoleExit:
        """`started` gets the process id at once."""
        errors, returncode = BoundedText(), -1
        worktree = worktree_of(self._folder)
        async with started_process(
            self._command, cwd=worktree, env=self._environment, stderr=subprocess.PIPE
        ) as process:
            started(process.pid)
            async with anyio.create_task_group() as readers:
                readers.start_soon(self._transcribe, process.stdout)
                readers.start_soon(_drain, process.stderr, errors)
                returncode = await self._until_exit(process)
                # Whoever it left behind must not hold the pipes open, nor go on working.
                await kill_group(process.pid)
                readers.cancel_scope.deadline = anyio.current_time() + DRAIN_S
        (self._folder / "stderr.txt").write_text(str(errors), encoding="utf-8")
        return RoleExit(returncode, self._result, self._why, str(errors))

    async def _until_exit(self, process: anyio.abc.Process) -> int:
        # Not process.wait(): since Python 3.11 that also waits for the pipes, which a grandchild may hold.
        while process.returncode is None:
            if why := self._why or self._limit():
                self.stop(why)
                await interrupt_group(process.pid, GRACE_S)
            await anyio.sleep(TICK_S)
        return process.returncode

    async def _transcribe(self, stream: anyio.abc.ByteReceiveStream | None) -> None:
        assert stream
        lines = LineBuffer()
        file = self._folder / "transcript.jsonl"
        with file.open("ab") as transcript:
            if file.stat().st_size and not _ends_a_line(file):
                transcript.write(b"\n")
            async for chunk in stream:
                transcript.write(chunk)
                transcript.flush()
                for line in lines.add(chunk):
                    self._understand(line)
            self._understand(lines.rest())

    def _understand(self, line: str) -> None:
        if event := self._agent.event(line):
            self._result = event if event.kind == "result" else self._result
            self._hear(event)


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


async def _drain(stream: anyio.abc.ByteReceiveStream | None, text: BoundedText) -> None:
    assert stream
    async for chunk in stream:
        text.add(chunk)


def _ends_a_line(file: Path) -> bool:
    with file.open("rb") as stream:
        stream.seek(-1, 2)
        return stream.read(1) == b"\n"
