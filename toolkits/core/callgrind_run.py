"""Runs a command under callgrind and says what came of it, crash and time limit included.

A solution runs in a room of its own. A command line without a room is the user's own program: it runs as it is.
"""

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from toolkits.core import process
from toolkits.core.errors import LabError, ToolkitUnavailable
from toolkits.core.profile_box import Room
from toolkits.core.profilers import callgrind
from toolkits.core.profilers.verdict import COST_MODEL, verdict
from toolkits.core.schema import ProfileReport

LIMIT_S = 300.0
CACHES = ("--I1=32768,8,64", "--D1=49152,12,64", "--LL=8388608,16,64")
"""The same on every machine, so that counts compare; 8 MB is about one core's share of a last level."""
REPORT, LOG = "callgrind.out", "valgrind.log"
SOURCE_LIMIT_BYTES = 1_000_000
_KILLED = re.compile(r"terminating with default action of signal (\d+) \((\w+)\)")
_FRAME = re.compile(r"==\d+==\s+(?:at|by) 0x[0-9A-F]+: (.*)")


@dataclass(frozen=True)
class Subject:
    """What is profiled, and which lines are its own."""

    target: str
    command: Sequence[str]
    cwd: Path
    environment: Mapping[str, str]
    sources: Mapping[str, str] | None = None
    """Name -> text. None: the files under `cwd` that the debug information names."""
    count_inside: str = ""
    """Count only inside this function."""
    last_words: str = ""
    """What the program says when it came to its end; without it the kernel ended the process."""
    room: Room | None = None
    """None: a program of the user's, run in `cwd` with all the user's rights."""


async def profile(subject: Subject, folder: Path, limit_s: float = LIMIT_S) -> ProfileReport:
    """Callgrind's counts, hot lines and verdict; its own output stays in `folder`."""
    for old in folder.glob(f"{REPORT}.*"):
        old.unlink()
    done = await _run(subject, folder, limit_s)
    log = folder / LOG
    log.write_text(done.output, encoding="utf-8")
    empty = ProfileReport(tool="callgrind", target=subject.target, command=list(subject.command), raw_report=str(log))
    if done.returncode is None:
        return empty.model_copy(update={"verdict": _too_long(limit_s)})
    if killed := _KILLED.search(done.output):
        return empty.model_copy(
            update={"verdict": _crash(killed, _frames(done.output), subject), "notes": _frames(done.output)}
        )
    if subject.last_words not in done.output:
        return empty.model_copy(update={"verdict": _nothing(done)})
    reports = sorted(folder.glob(f"{REPORT}.*"), key=lambda path: _instructions(path.read_text(errors="replace")))
    if not reports or not _instructions(reports[-1].read_text(errors="replace")):
        return empty.model_copy(update={"verdict": _nothing(done)})
    notes = _run_notes(done.returncode, len(reports))
    try:
        return _report(subject, reports[-1]).model_copy(update={"notes": notes})
    except (LabError, ValueError, LookupError) as error:  # a solution can write such a file itself
        what = f"nothing was counted: {reports[-1].name} is no report of callgrind ({error})"
        return empty.model_copy(update={"verdict": what[:500]})


async def _run(subject: Subject, folder: Path, limit_s: float) -> process.Completed:
    """Under callgrind, whose reports are in `folder` afterwards."""
    room = subject.room
    command = [_valgrind(), *_options(subject, room.inside if room else folder.resolve()), *subject.command]
    if not room:
        return await process.run(command, cwd=subject.cwd, timeout_s=limit_s, env=subject.environment)
    done = await room.run(command, subject.environment, limit_s)
    room.collect(folder, f"{REPORT}.*")
    return done


def missing() -> str:
    return "" if shutil.which("valgrind") else "valgrind: `apt install valgrind`"


def _valgrind() -> str:
    path = shutil.which("valgrind")
    if not path:
        raise ToolkitUnavailable(f"profiling here needs {missing()}")
    return path


def _options(subject: Subject, folder: Path) -> list[str]:
    inside = [f"--toggle-collect={subject.count_inside}"] if subject.count_inside else ["--trace-children=yes"]
    simulate = ["--cache-sim=yes", "--branch-sim=yes", "--dump-instr=no", *CACHES]
    return ["--tool=callgrind", *simulate, *inside, f"--callgrind-out-file={folder}/{REPORT}.%p"]


def _report(subject: Subject, path: Path) -> ProfileReport:
    profile = callgrind.parse(path.read_text(encoding="utf-8", errors="replace"))
    counts = callgrind.counts(profile)
    sources = subject.sources if subject.sources is not None else _sources_under(subject.cwd, profile)
    bottleneck, line = verdict(counts)
    return ProfileReport(
        tool="callgrind",
        target=subject.target,
        command=list(subject.command),
        hot_lines=callgrind.hot_lines(profile, sources),
        bottleneck=bottleneck,
        verdict="; ".join([line, *_where_misses(profile, sources, bottleneck)]),
        raw_report=str(path),
    ).model_copy(update=counts.measured())


def _where_misses(profile: callgrind.Profile, sources: Mapping[str, str], bottleneck: str) -> list[str]:
    """The line with most of what limits it."""
    events = {"memory": ("D1mr", "D1mw"), "branches": ("Bcm", "Bim")}.get(bottleneck, ("Ir",))
    what = {"memory": "misses", "branches": "mispredictions"}.get(bottleneck, "instructions")
    (file, line, source), most = max(callgrind.by_line(profile, sources, *events).items(), key=lambda item: item[1])
    everything = sum(profile.totals.get(event, 0) for event in events) or 1
    return [f"{most / everything:.0%} of the {what} at {f'{file}:{line}' if line else f'{source} in {file}'}"]


def _sources_under(cwd: Path, profile: callgrind.Profile) -> dict[str, str]:
    root = cwd.resolve()
    files = {Path(place.file) for place in profile.costs if place.file.startswith(f"{root}/")}
    return {
        str(file.relative_to(root)): file.read_text(encoding="utf-8", errors="replace")
        for file in files
        if file.is_file() and file.stat().st_size < SOURCE_LIMIT_BYTES
    }


def _instructions(text: str) -> int:
    totals = re.search(r"^totals: *(\d+)", text, re.MULTILINE)
    return int(totals[1][:18]) if totals else 0


def _run_notes(returncode: int, processes: int) -> list[str]:
    return [
        f"{COST_MODEL}; simulated caches: 48 KB first level, 8 MB last level, no prefetcher",
        *([f"the program ended with exit status {returncode}"] if returncode else []),
        *([f"{processes} processes ran; this is the one with most instructions"] if processes > 1 else []),
    ]


def _too_long(limit_s: float) -> str:
    return (
        f"stopped after {limit_s:.0f} s under callgrind, which runs code 50 to 200 times slower: nothing was counted;"
        " profile a smaller workload"
    )


def _crash(killed: re.Match[str], frames: list[str], subject: Subject) -> str:
    own = [frame for frame in frames if any(f"({Path(name).name}:" in frame for name in subject.sources or ())]
    where = next(iter([*own, *frames]), "an unknown place")
    hint = (
        "; valgrind lacks this instruction (AVX-512, AMX): guard it by #ifdef __AVX512F__ with a version for AVX2"
        if killed[2] == "SIGILL"
        else ""
    )
    return f"crashed under callgrind with signal {killed[1]} ({killed[2]}) at {where}: nothing was counted{hint}"


def _frames(output: str) -> list[str]:
    return _FRAME.findall(output)[:5]


def _nothing(done: process.Completed) -> str:
    words = [line for line in done.output.splitlines() if line.strip() and not line.startswith(("==", "--"))]
    said = f", and said {words[-1][:200]!r}" if words else ""
    return f"nothing was counted: the program ended with exit status {done.returncode}{said}"
