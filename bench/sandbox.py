"""What a box costs over a bare process, in pairs of the same run that change their order."""

import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from unittest.mock import patch

from rich.console import Console
from rich.table import Table

from toolkits.core import compiler, sandbox
from toolkits.core.judge import zygotes
from toolkits.core.judge.boxes import Box
from toolkits.core.judge.confine import surroundings
from toolkits.core.process import start_child

PAIRS = 15
SOURCE = 'extern "C" int one() { return 1; }\n'
Start = Callable[[], list[float]]
"""Does it once and gives the seconds that each of its parts took."""


def measure(console: Console) -> None:
    """One row a part of a start; where no box can be had, the reason."""
    bwrap, why_not = sandbox.mechanism().bwrap, sandbox.mechanism().why_not
    if not bwrap:
        console.print(f"what the sandbox costs: nothing, as no box can be built here: {why_not}")
        return
    table = Table(title=f"what the sandbox costs, median of {PAIRS} pairs, milliseconds", title_justify="left")
    for column in ("what", "bare", "boxed", "difference", "ratio"):
        table.add_column(column, justify="left" if column == "what" else "right")
    for names, bare, boxed in (_program(bwrap), _compilation()):
        _rows(table, names, bare, boxed)
    core = zygotes.default_cpu()
    with closing(zygotes.start_zygote(sys.executable, core)) as boxing, closing(_without_boxes(core)) as plain:
        _rows(table, ["worker ready, box built ahead", "worker ended"], _worker(plain), _worker(boxing))
    console.print(table)


def _rows(table: Table, names: list[str], bare: Start, boxed: Start) -> None:
    """The first pair fills caches and does not count."""
    pairs: list[tuple[list[float], list[float]]] = []
    for number in range(PAIRS + 1):
        first, second = (bare, boxed) if number % 2 else (boxed, bare)
        seconds = {first: first()} | {second: second()}
        pairs.append((seconds[bare], seconds[boxed]))
    for part, name in enumerate(names):
        columns = [(1e3 * a[part], 1e3 * b[part]) for a, b in pairs[1:]]
        plain, held = (statistics.median(column) for column in zip(*columns, strict=True))
        over = statistics.median(b - a for a, b in columns)
        ratio = statistics.median(b / a for a, b in columns)
        table.add_row(name, f"{plain:.1f}", f"{held:.1f}", f"{over:+.1f}", f"{ratio:.2f}")


def _program(bwrap: str) -> tuple[list[str], Start, Start]:
    """From the start of `cat` to its first answer, and to its end."""
    seen = surroundings()

    def bare() -> list[float]:
        started = time.perf_counter()
        cat = start_child(["cat"], env={}, pass_fds=[], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert cat.stdin and cat.stdout
        cat.stdin.write(b"\n")
        cat.stdin.flush()
        cat.stdout.read(1)
        ready = time.perf_counter()
        cat.kill()
        cat.communicate()
        return [ready - started, time.perf_counter() - ready]

    def boxed() -> list[float]:
        started = time.perf_counter()
        box = Box(bwrap, seen["visible"], seen["hidden"], nodes=[])
        os.close(box.entrance())
        ready = time.perf_counter()
        box.close()
        return [ready - started, time.perf_counter() - ready]

    return ["program ready, box built now", "program ended"], bare, boxed


def _compilation() -> tuple[list[str], Start, Start]:
    """A shared library from one line."""

    def build(enclosed: bool) -> list[float]:
        with tempfile.TemporaryDirectory() as folder:
            work = Path(folder)
            (work / "one.cpp").write_text(SOURCE, encoding="utf-8")
            command = [compiler.Compiler().path(), "-O3", "-shared", "-fPIC", "one.cpp", "-o", "one.so"]
            whole = compiler.enclosed(command, work, ".") if enclosed else command
            environment = compiler.environment(compiler.name_inside(work) if enclosed else work)
            started = time.perf_counter()
            subprocess.run(whole, cwd=work, env=environment, check=True)
            return [time.perf_counter() - started]

    return ["g++ on one line"], lambda: build(False), lambda: build(True)


def _without_boxes(core: int) -> zygotes.Zygote:
    """A zygote as on a machine that can build none."""
    with patch.object(zygotes, "mechanism", return_value=sandbox.Mechanism("", "the bench wants none")):
        return zygotes.start_zygote(sys.executable, core)


def _worker(zygote: zygotes.Zygote) -> Start:
    """From asking for a worker to its first word, and to its end with its room's."""

    def start() -> list[float]:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours:
            started = time.perf_counter()
            with theirs:
                pid = zygote.fork(theirs, 2)
            for listener in socket.recv_fds(ours, 4096, 1)[1]:
                os.close(listener)
            ready = time.perf_counter()
        zygote.reap(pid)
        return [ready - started, time.perf_counter() - ready]

    return start
