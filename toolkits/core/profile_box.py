"""The box a profiled solution runs in: inputs read-only, one folder of its own to write, limits; else limits alone.

Knows no profiler. What the solution leaves in its folder is copied out only if it is a plain file.
"""

import os
import secrets
import shutil
import stat
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from toolkits.core import process, sandbox

FOLDER = "own"
INSIDE = Path("/profile")
MEMORY_BYTES = 16 << 30
FILE_BYTES = 1 << 30
OPEN_FILES = 1024
MOST_COLLECTED, MOST_COLLECTED_BYTES = 64, 64 << 20
"""Files, and bytes of each, that are taken out of a room: a solution may leave any number of any size."""
PROCESSES = 256
"""Threads count too. Only in a box, where nobody else's are counted with them."""


@dataclass(frozen=True)
class Room:
    """Where a solution runs, and what it may see there."""

    outside: Path
    """Its own folder, here."""
    reads: Sequence[Path]
    address_space: bool = True
    """Whether its address space is limited: a sanitizer reserves terabytes, and bounds what it really uses itself."""
    nodes: Sequence[str] = ()
    """Device files that it may use."""

    @property
    def inside(self) -> Path:
        """Its own folder, as it knows it."""
        return INSIDE if sandbox.mechanism().bwrap else self.outside

    def with_reads(self, *more: Path) -> "Room":
        """The same with more to see."""
        return replace(self, reads=[*self.reads, *(path.resolve() for path in more)])

    async def run(self, command: Sequence[str], environment: Mapping[str, str], limit_s: float) -> process.Completed:
        """The command to its end, with nothing around it but what it may see."""
        bwrap = sandbox.mechanism().bwrap
        own = dict(environment) | {"HOME": str(self.inside), "TMPDIR": str(self.inside)}
        whole = self._boxed(bwrap, command) if bwrap else [*_limits(self.address_space), *command]
        return await process.run(whole, cwd=self.outside, timeout_s=limit_s, env=own)

    def collect(self, folder: Path, pattern: str) -> list[Path]:
        """Copies of the plain files it left: a link would be followed to what is not its own."""
        plain = [path for path in sorted(self.outside.glob(pattern)) if _plain(path)]
        return [_copied(path, folder) for path in plain[:MOST_COLLECTED]]

    def notes(self) -> list[str]:
        """What a reader of the profile must know of the box."""
        found = sandbox.describe()
        if not found["missing"]:
            return []
        return [f"ran without a box and could read this user's files: {found['missing']}; remedy: {found['remedy']}"]

    def _boxed(self, bwrap: str, command: Sequence[str]) -> list[str]:
        user = secrets.choice(sandbox.USERS) if self._another_user_could() else None
        if user is not None:
            os.chown(self.outside, user, user)
        limits = [*_limits(self.address_space), f"--nproc={PROCESSES}"] if _limits(self.address_space) else []
        return sandbox.enclosed(
            bwrap,
            [*limits, *command],
            visible=sorted({*map(str, self.reads), *self._unseen(sandbox.installation(command[0]))}),
            nodes=self.nodes,
            writable={str(self.outside): str(INSIDE)},
            cwd=str(INSIDE),
            user=user,
        )

    def _unseen(self, paths: Sequence[str]) -> list[str]:
        """Those that do not lie in what is seen already."""
        return [path for path in paths if not any(Path(path).is_relative_to(read) for read in self.reads)]

    def _another_user_could(self) -> bool:
        """Whether somebody else may run it, and may read its inputs: a strict umask leaves them to their owner."""
        files = [file for path in self.reads for file in (path, *(path.iterdir() if path.is_dir() else ()))]
        return bool(shutil.which("setpriv")) and sandbox.can_change_user() and all(map(_readable_by_all, files))


@contextmanager
def room(folder: Path, reads: Sequence[Path]) -> Generator[Room]:
    """A room whose own folder lies in `folder` and is gone at the end."""
    outside = folder.resolve() / FOLDER
    shutil.rmtree(outside, ignore_errors=True)
    outside.mkdir(parents=True)
    try:
        yield Room(outside, [path.resolve() for path in reads])
    finally:
        _removed(outside)


def _removed(folder: Path) -> None:
    """All of it, however deep: `rmtree` calls itself for each level, so here each level is brought to the top."""
    aside = secrets.token_hex(8)
    number = 0
    while entries := list(os.scandir(folder)):
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                Path(entry.path).unlink()
                continue
            Path(entry.path).chmod(0o700)
            for inner in os.scandir(entry.path):
                number += 1
                Path(inner.path).rename(folder / f"{aside}{number}")
            Path(entry.path).rmdir()
    folder.rmdir()


def _limits(address_space: bool) -> list[str]:
    prlimit = shutil.which("prlimit")
    if not prlimit:
        return []
    most = [f"--as={MEMORY_BYTES}"] if address_space else []
    return [prlimit, *most, f"--fsize={FILE_BYTES}", f"--nofile={OPEN_FILES}", "--core=0"]


def _readable_by_all(path: Path) -> bool:
    return bool(path.stat().st_mode & stat.S_IROTH)


def _plain(path: Path) -> bool:
    seen = path.lstat()
    return stat.S_ISREG(seen.st_mode) and seen.st_size <= MOST_COLLECTED_BYTES


def _copied(path: Path, folder: Path) -> Path:
    return Path(shutil.copyfile(path, folder / path.name, follow_symlinks=False))
