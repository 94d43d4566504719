"""Evaluates random garbage through the tools, thousands of times, and then looks at what it left behind.

    python -m bench.garbage [N] [--seed S]

It must leave no process, no file outside the workspace, no memory and no descriptor, and the next honest evaluation
must be right. Its parent adopts and collects orphans, so that none can hide. Exit status 1: something was left.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from mcp import Client
from rich.console import Console
from rich.table import Table

from bench.garbage_recipes import HONEST_CPP, HONEST_PYTHON, TASK, TASK_FILES, recipes, write
from mcp_server.server import build_server
from mcp_server.serving import open_lab
from toolkits.core.parent import adopt_orphans, children, lives

EVALUATIONS = 10_000
WARM_UP = 500
"""Evaluations after which memory and descriptors are first looked at."""
MOST_GROWTH_MB = 50
TOLD_EVERY_S = 5.0
SETTLE_S = 10.0
"""For the next candidate's worker, which is started after an answer."""
LEASES = ("kernel-lab-*", "kernel-lab-*/*.lease")
"""By which servers of different workspaces take turns on a device: they lie where all of them look."""
CHECKOUT = Path(__file__).parents[1]


@dataclass
class Place:
    """Folders of this run alone, and what they held before."""

    workspace: Path
    watched: list[Path]
    """Where nothing may be left."""

    def left(self) -> list[str]:
        known = [path for lease in LEASES for folder in self.watched for path in folder.glob(lease)]
        found = [str(path) for folder in self.watched for path in folder.rglob("*") if path not in known]
        return found + [
            str(path) for name in ("builds/.work-*", "solutions/.aside-*") for path in self.workspace.glob(name)
        ]


@dataclass(frozen=True)
class Held:
    """What this process and its judge hold."""

    server_mb: float
    judge_mb: float
    server_files: int
    judge_files: int

    @property
    def files(self) -> tuple[int, int]:
        return self.server_files, self.judge_files


@dataclass
class Findings:
    """What came of the garbage, and what it left."""

    counts: Counter[str] = field(default_factory=Counter[str])
    early: Held | None = None
    late: Held | None = None
    honest: list[str] = field(default_factory=list[str])
    processes: list[str] = field(default_factory=list[str])
    files: list[str] = field(default_factory=list[str])

    def problems(self) -> list[str]:
        assert self.early and self.late
        grown = {
            "server": self.late.server_mb - self.early.server_mb,
            "judge": self.late.judge_mb - self.early.judge_mb,
        }
        return [
            *(f"{who} grew by {mb:.0f} MB" for who, mb in grown.items() if mb > MOST_GROWTH_MB),
            *([f"descriptors: {self.early.files} before, {self.late.files} after"] if self._leaked() else []),
            *(f"an honest evaluation gave {outcome}" for outcome in self.honest if outcome != "PASSED"),
            *(f"process left: {process}" for process in self.processes),
            *(f"file left: {file}" for file in self.files[:20]),
            *(f"{outcome} {times} times" for outcome, times in self.counts.items() if _of_the_lab(outcome)),
        ]

    def _leaked(self) -> bool:
        return self.early is not None and self.late is not None and self.late.files != self.early.files


def _of_the_lab(outcome: str) -> bool:
    return outcome.startswith(("HARNESS_ERROR", "INVALID_REFERENCE", "failed"))


@contextmanager
def place() -> Generator[Place]:
    """Home, temporary folder and working directory of this process lie in one new folder as long as this lasts."""
    before = dict(os.environ), Path.cwd(), tempfile.tempdir
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        home, scratch, cwd, workspace = (root / name for name in ("home", "tmp", "cwd", "workspace"))
        for one in (home, scratch, cwd, workspace):
            one.mkdir()
        os.environ |= {"HOME": str(home), "TMPDIR": str(scratch)}
        tempfile.tempdir = str(scratch)
        os.chdir(cwd)
        try:
            yield Place(workspace, [home, scratch, cwd])
        finally:
            os.environ.clear()
            os.environ |= before[0]
            os.chdir(before[1])
            tempfile.tempdir = before[2]


async def measure(console: Console, evaluations: int, seed: int) -> Findings:
    """All of it, in a lab of its own that is closed at the end."""
    found = Findings()
    with place() as where:
        for name, text in TASK_FILES.items():
            write({name: text.encode()}, where.workspace / "kernels" / TASK)
        lab = open_lab(where.workspace)
        try:
            async with Client(build_server(lab)) as client:
                await _evaluated(console, client, where.workspace, found, evaluations, seed)
        finally:
            with anyio.CancelScope(shield=True):
                await lab.close()
        found.processes = [f"{pid} {_name(pid)}" for pid in _descendants(os.getpid())]
        found.files = where.left()
    return found


async def _evaluated(
    console: Console, client: Client, root: Path, found: Findings, evaluations: int, seed: int
) -> None:
    garbage, folder = recipes(seed, CHECKOUT), root / "garbage"
    started = told = time.monotonic()
    for number in range(evaluations):
        if number % WARM_UP == 0:
            await _honest(client, root, found, number)
        if number == min(WARM_UP, evaluations // 2):
            found.early = await _settled(found.early)
        shutil.rmtree(folder, ignore_errors=True)
        write(garbage.next(), folder)
        found.counts[await _outcome(client, folder)] += 1
        if time.monotonic() - told >= TOLD_EVERY_S:
            told = time.monotonic()
            console.print(f"{number + 1} of {evaluations}, {(number + 1) / (told - started):.0f} a second")
    await _honest(client, root, found, evaluations)
    found.late = await _settled(found.early)


async def _honest(client: Client, root: Path, found: Findings, number: int) -> None:
    """Right in both languages, and a wrong one that must not pass; new texts, which no cache knows."""
    for name, text, comment, right in (
        ("main.py", HONEST_PYTHON, "#", True),
        ("main.cpp", HONEST_CPP, "//", True),
        ("main.py", HONEST_PYTHON.replace("2", "3"), "#", False),
    ):
        folder = root / "honest"
        shutil.rmtree(folder, ignore_errors=True)
        toolkit = "python" if name.endswith(".py") else "cpp"
        yaml = f"toolkit: {toolkit}\nentry_point: {name}::run\n"
        write({"solution.yaml": yaml.encode(), name: f"{text}{comment} {number}\n".encode()}, folder)
        outcome = await _outcome(client, folder)
        found.honest.append("PASSED" if right == (outcome == "PASSED") else f"{outcome} in place of {right}")


async def _outcome(client: Client, folder: Path) -> str:
    """Status and cause, or that the call itself was refused."""
    answer = await client.call_tool("benchmark", {"task": TASK, "path": str(folder), "mode": "check", "wait_s": 50})
    content = answer.structured_content
    if answer.is_error or not content:
        return "refused"
    return f"{content.get('status') or content['state']} {content.get('cause') or ''}".strip()


async def _settled(before: Held | None) -> Held:
    """Memory and descriptors, once the judge has started what it starts after an answer."""
    held = _held()
    with anyio.move_on_after(SETTLE_S):
        while True:
            await anyio.sleep(0.5)
            last, held = held, _held()
            if held.files == (before.files if before else last.files):
                break
    return held


def _held() -> Held:
    judges = sorted(children(os.getpid()))
    return Held(_mb(os.getpid()), sum(map(_mb, judges)), _files(os.getpid()), sum(map(_files, judges)))


def _mb(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines()
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:")), 0.0)


def _files(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def _descendants(pid: int) -> list[int]:
    return [one for child in children(pid) if lives(child) for one in (child, *_descendants(child))]


def _name(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace").replace("\0", " ")[:100]


def show(console: Console, found: Findings, seconds: float) -> None:
    table = Table(title=f"{found.counts.total()} pieces of garbage in {seconds:.0f} s", title_justify="left", box=None)
    table.add_column("outcome")
    table.add_column("times", justify="right")
    for outcome, times in sorted(found.counts.items()):
        table.add_row(outcome, str(times))
    console.print(table)
    for when, held in (("warm", found.early), ("at the end", found.late)):
        if held:
            console.print(
                f"{when}: server {held.server_mb:.0f} MB, {held.server_files} descriptors; "
                f"judge {held.judge_mb:.0f} MB, {held.judge_files} descriptors"
            )
    for line in found.problems() or [f"nothing left; {len(found.honest)} honest evaluations right"]:
        console.print(line)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.garbage")
    parser.add_argument("evaluations", nargs="?", type=int, default=EVALUATIONS)
    parser.add_argument("--seed", type=int, default=20)
    asked = parser.parse_args()
    adopt_orphans()
    if pid := os.fork():
        return _as_init(pid)
    return _measured(asked.evaluations, asked.seed)


def _as_init(child: int) -> int:
    """Collect whatever ends until the child has; then nobody else may be here."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the child gets it too, and cleans up
    while (ended := os.wait())[0] != child:
        pass
    status = os.waitstatus_to_exitcode(ended[1])
    if left := [f"{pid} {_name(pid)}" for pid in _descendants(os.getpid())]:
        sys.stdout.write(f"orphans left: {', '.join(left)}\n")
        status = 1
    return status


def _measured(evaluations: int, seed: int) -> int:
    console, started = Console(width=100, highlight=False), time.monotonic()
    try:
        found = anyio.run(measure, console, evaluations, seed)
    except KeyboardInterrupt:
        return 130
    show(console, found, time.monotonic() - started)
    return 1 if found.problems() else 0


if __name__ == "__main__":
    sys.exit(main())
