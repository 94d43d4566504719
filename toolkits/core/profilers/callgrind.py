"""Callgrind's output file as counts a source line. Pure functions over recorded text."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from toolkits.core.errors import InvalidInput
from toolkits.core.profilers.verdict import Counts
from toolkits.core.schema import HotLine

HOT_LINES = 12
LEAST_SHARE = 0.005
_POSITION_KEYS = {
    "ob": "ob",
    "fl": "fl",
    "fi": "fl",
    "fe": "fl",
    "fn": "fn",
    "cob": "ob",
    "cfi": "fl",
    "cfl": "fl",
    "cfn": "fn",
}
_COMPRESSED = re.compile(r"\((\d+)\)(?: (.*))?")
_HEADER_ONLY = ("calls=", "jump=", "jcnd=")


@dataclass(frozen=True)
class Place:
    """Where cost was counted: `line` is 0 and `file` is `???` without debug information."""

    binary: str
    file: str
    function: str
    line: int


@dataclass(frozen=True)
class Profile:
    """Self cost of every place, in the order of `events`."""

    command: str
    events: tuple[str, ...]
    costs: Mapping[Place, tuple[int, ...]]
    totals: Mapping[str, int]

    def cost(self, place: Place, *events: str) -> int:
        """Sum of the named events at a place; an event that was not recorded counts as none."""
        return sum(count for name, count in zip(self.events, self.costs[place], strict=True) if name in events)


def parse(text: str) -> Profile:
    """Self cost by place; calls (whose next line is inclusive cost of the callee) are left out."""
    if not text.startswith("# callgrind format"):
        raise InvalidInput("not a callgrind output file: it must start with `# callgrind format`")
    header = dict(_header(text))
    events = tuple(header.get("events", "").split())
    if not events or "totals" not in header:
        raise InvalidInput("the callgrind output is truncated: it has no `events` or no `totals` line")
    if header.get("positions", "line") != "line":
        raise InvalidInput("the callgrind output has instruction positions: record it with --dump-instr=no")
    try:
        costs = _Reader(len(events)).read(text.splitlines())
        totals = _widened(tuple(map(int, header["totals"].split())), len(events))
        return Profile(header.get("cmd", ""), events, costs, dict(zip(events, totals, strict=True)))
    except (ValueError, KeyError, IndexError) as error:
        raise InvalidInput(f"the callgrind output is damaged ({error}): copy it again or record it anew") from None


def counts(profile: Profile) -> Counts:
    """The totals under the names that every profiler shares; None where the event was not simulated."""

    def total(*events: str) -> int | None:
        return sum(profile.totals[event] for event in events) if set(events) <= set(profile.events) else None

    return Counts(
        instructions=total("Ir"),
        data_reads=total("Dr"),
        data_writes=total("Dw"),
        l1_misses=total("D1mr", "D1mw"),
        ll_misses=total("DLmr", "DLmw"),
        branches=total("Bc", "Bi"),
        branch_misses=total("Bcm", "Bim"),
    )


def hot_lines(profile: Profile, sources: Mapping[str, str]) -> list[HotLine]:
    """The places with most instructions; lines of `sources` carry their text, code without lines its function."""
    everything = profile.totals["Ir"] or 1
    ranked = sorted(by_line(profile, sources, "Ir").items(), key=lambda item: -item[1])
    return [
        HotLine(file=file, line=line, share=count / everything, instructions=count, source=source)
        for (file, line, source), count in ranked[:HOT_LINES]
        if count / everything >= LEAST_SHARE
    ]


def by_line(profile: Profile, sources: Mapping[str, str], *events: str) -> dict[tuple[str, int, str], int]:
    """Cost by (file, line, source text)."""
    grouped: defaultdict[tuple[str, int, str], int] = defaultdict(int)
    for place in profile.costs:
        grouped[_shown(place, sources)] += profile.cost(place, *events)
    return grouped


def _shown(place: Place, sources: Mapping[str, str]) -> tuple[str, int, str]:
    file = source_name(place.file, sources)
    if file is not None:
        lines = sources[file].splitlines()
        return file, place.line, lines[place.line - 1].strip() if 0 < place.line <= len(lines) else ""
    # The source of a library is not here: its function says more than a line in it.
    return PurePosixPath(place.binary).name or place.file, 0, place.function


def source_name(file: str, sources: Iterable[str]) -> str | None:
    """The solution's own name of a file in the debug information, None for a file of someone else."""
    normal = str(PurePosixPath(file))
    return next((name for name in sources if normal == name or normal.endswith(f"/{name}")), None)


def _header(text: str) -> Iterable[tuple[str, str]]:
    return re.findall(r"^(cmd|positions|events|totals): *(.*)$", text, re.MULTILINE)


class _Reader:
    """Walks the body: names are given once and then by number, line numbers relative to the last one."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._names: dict[tuple[str, str], str] = {}
        self._at = {"ob": "", "fl": "???", "fn": "???"}
        self._line = 0
        self._costs: defaultdict[Place, list[int]] = defaultdict(lambda: [0] * width)

    def read(self, lines: Iterable[str]) -> Mapping[Place, tuple[int, ...]]:
        inclusive = False
        for line in lines:
            if line.startswith(_HEADER_ONLY):
                inclusive = True
            elif line[:1].isdigit() or line[:1] in {"+", "-", "*"}:
                self._count(line.split(), inclusive)
                inclusive = False
            elif "=" in line:
                self._name(line)
        return {place: tuple(cost) for place, cost in self._costs.items()}

    def _name(self, line: str) -> None:
        key, _, value = line.partition("=")
        if key not in _POSITION_KEYS:
            return
        space = _POSITION_KEYS[key]
        name = self._resolve(space, value)
        if not key.startswith("c"):
            self._at[space] = name

    def _resolve(self, space: str, value: str) -> str:
        match = _COMPRESSED.fullmatch(value)
        if not match:
            return value
        if match[2] is not None:
            self._names[space, match[1]] = match[2]
        return self._names[space, match[1]]

    def _count(self, fields: list[str], inclusive: bool) -> None:
        position, *cost = fields
        self._line = _moved(self._line, position)
        if inclusive:
            return
        place = Place(self._at["ob"], self._at["fl"], self._at["fn"], self._line)
        held = self._costs[place]
        for index, value in enumerate(cost):
            held[index] += int(value)


def _moved(line: int, position: str) -> int:
    if position == "*":
        return line
    return line + int(position) if position[0] in "+-" else int(position)


def _widened(values: tuple[int, ...], width: int) -> tuple[int, ...]:
    """Trailing zeros are left out of the file."""
    return values + (0,) * (width - len(values))
