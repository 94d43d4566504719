"""A CUDA or HIP solution run once under the emulation's own checks: what they saw, by line. Knows no verdict.

The library watches itself (emulation/check.cpp) and says on its standard error what it sees; addresses in its code
become lines here. What it says is a claim of a process that a solution ran in, and is read as such.
"""

import json
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from toolkits.core import process
from toolkits.core.compiler import binutils, enclosed, environment, name_inside
from toolkits.core.errors import HarnessError
from toolkits.core.gpu.emulate import Emulated, emulated_library
from toolkits.core.native_profile import DONE, built_driver
from toolkits.core.profile_box import room
from toolkits.core.profile_child import child_environment
from toolkits.core.schema import Defect, Record, SanitizerFinding, Solution, Task, Workload
from toolkits.core.signature import Dialect, device_header

MOST_FINDINGS = 50
MOST_TABLE = 100_000
"""Characters that one variable of a process's environment may have."""
RUN_LIMIT_S = 120.0
_SIGN = "simt-finding "
_KINDS: Mapping[str, Defect] = {
    "race": "data_race",
    "out_of_bounds": "out_of_bounds",
    "uninitialised": "uninitialised",
    "divergent_barrier": "divergent_barrier",
    "input_written": "invalid_access",
}
_SHARED = re.compile(r"^\s*\d+: ([0-9a-f]+)\s+(\d+|0x[0-9a-f]+) TLS .* (\S+)$", re.MULTILINE)
_FRAME = re.compile(r"^(?P<function>.*) at (?P<file>.*):(?P<line>\d+)")
_Index = tuple[int, int, int]


class _Said(Record):
    """One line of the library."""

    kind: str
    what: str
    kernel: str
    place: str
    """`file:line`, or an address in the library's code."""
    thread: _Index
    block: _Index
    address: str
    other_place: str = ""
    other_thread: _Index = (0, 0, 0)
    other_block: _Index = (0, 0, 0)


@dataclass(frozen=True)
class Watched:
    """What a run under the checks gave."""

    findings: list[SanitizerFinding]
    """Each kind and place once, in the order in which they were seen."""
    reason: str = ""
    """Why nothing was run: the emulation cannot; empty: it was."""
    ending: str = ""
    """How the run ended if it did not return: a fault, a time limit, a barrier that nobody opens."""


async def watched(
    task: Task,
    solution: Solution,
    dialect: Dialect,
    rounds: Sequence[tuple[Workload, Path]],
    builds: Path,
    folder: Path,
    enough: int,
) -> Watched:
    """Build the checking library in `folder` and run it on recorded inputs, in a box, until it found `enough`."""
    built = await checking_library(task, solution, dialect, folder)
    if not built.library:
        return Watched([], reason=built.why_not())
    driver = await built_driver(task, solution, builds)
    shared = await _shared_variables(built.library)
    found: dict[tuple[str, str, int | None, str], SanitizerFinding] = {}
    ending = ""
    for one, arguments in rounds:
        seen, ending = await _run(built.library, driver, arguments, shared, one.uuid, folder)
        for finding in seen:
            found.setdefault((finding.kind, finding.file, finding.line, finding.detail), finding)
        if ending or len(found) >= enough:
            break
    return Watched(list(found.values())[:MOST_FINDINGS], ending=ending)


async def checking_library(task: Task, solution: Solution, dialect: Dialect, folder: Path) -> Emulated:
    """The solution with every access of memory watched."""
    header = device_header(task, dialect, solution.entry_function, solution.plan_function)
    return await emulated_library(folder, task, solution, dialect, header, checking=True)


async def _run(
    library: Path, driver: Path, arguments: Path, shared: str, round_: str, folder: Path
) -> tuple[list[SanitizerFinding], str]:
    with room(folder, [driver, library, arguments]) as own:
        command = [str(driver), str(library), str(arguments)]
        done = await own.run(command, child_environment(folder) | {"SIMT_SHARED": shared}, RUN_LIMIT_S)
    said = list(_said(done.output))
    lines = await _lines(library, said)
    found = [_finding(one, lines, round_) for one in said]
    words = [line for line in done.output.splitlines() if not line.startswith((_SIGN, DONE))]
    ended = "at the time limit" if done.returncode is None else f"with status {done.returncode}"
    return found, "" if done.returncode == 0 else f"ended {ended}: " + "\n".join(words)[-1000:]


def _said(output: str) -> Iterator[_Said]:
    for line in output.splitlines():
        if line.startswith(_SIGN):
            try:
                yield _Said.model_validate(json.loads(line.removeprefix(_SIGN)))
            except (ValueError, ValidationError):
                continue  # cut in the middle, or the solution's own words


def _finding(said: _Said, lines: Mapping[str, tuple[str, int]], round_: str) -> SanitizerFinding:
    file, line = lines.get(said.place, ("", 0))
    detail = said.what
    if said.other_place:
        other_file, other_line = lines.get(said.other_place, ("", 0))
        detail += f"; the other: {other_file}:{other_line} by {_who(said.other_thread, said.other_block)}"
    return SanitizerFinding(
        tool="emulation",
        kind=_KINDS.get(said.kind, "undefined_behaviour"),
        file=file,
        line=line or None,
        function=said.kernel,
        thread=_who(said.thread, said.block),
        access="write" if said.what.startswith(("write", "two threads")) else "read" if "read" in said.what else "",
        address=said.address,
        detail=detail,
        round=round_,
    )


def _who(thread: _Index, block: _Index) -> str:
    return f"thread ({','.join(map(str, thread))}) of block ({','.join(map(str, block))})"


async def _lines(library: Path, said: Sequence[_Said]) -> dict[str, tuple[str, int]]:
    """File and line of every place: of an address, in the innermost function that is the solution's own."""
    places = {place for one in said for place in (one.place, one.other_place) if place}
    codes = sorted(place for place in places if place.startswith("0x"))
    lines = {place: _split(place) for place in places if not place.startswith("0x")}
    if not codes:
        return lines
    output = await _binutils(library, "addr2line", "-Cfipa", "-e", library.name, *codes)
    for block in re.split(r"(?m)^(?=0x)", output):
        code, _, frames = block.partition(": ")
        named = [match for text in frames.split("(inlined by)") if (match := _FRAME.match(text.strip()))]
        own = [match for match in named if "emulation/" not in match["file"]] or named
        if own:
            lines[hex(int(code, 16))] = _split(f"{own[0]['file']}:{own[0]['line']}")
    return lines


def _split(place: str) -> tuple[str, int]:
    file, _, line = place.rpartition(":")
    return posixpath.normpath(file), int(line) if line.isdecimal() else 0


async def _shared_variables(library: Path) -> str:
    """`name:offset:size;` of each shared variable."""
    output = await _binutils(library, "readelf", "-sW", library.name)
    found = [(_plain(name), int(offset, 16), int(size, 0)) for offset, size, name in _SHARED.findall(output)]
    table = "".join(f"{name}:{offset}:{size};" for name, offset, size in sorted(found, key=lambda part: part[1]))
    return table if len(table) < MOST_TABLE else ""


def _plain(symbol: str) -> str:
    """The variable's own name in `_ZZ6kernelPfE4tile` or `_ZL4tile`."""
    if symbol.startswith("simt_pad_") or "simt_pad_" in symbol:
        return "simt_pad_"
    local = symbol.rpartition("E")[2] if symbol.startswith("_ZZ") else symbol.removeprefix("_ZL")
    match = re.match(r"(\d+)", local)
    return local[match.end() : match.end() + int(match[1])] if match else symbol


async def _binutils(library: Path, program: str, *arguments: str) -> str:
    """What a reader of object files says; boxed, as the file is made from a solution."""
    work = library.parent
    boxed = enclosed([binutils(program), *arguments], work, ".")
    done = await process.run(boxed, cwd=work, timeout_s=20, env=environment(name_inside(work)), keep=4_000_000)
    if done.returncode != 0:
        raise HarnessError(f"{program} cannot read the checking build: {done.output.strip()[-300:]}")
    return done.output
