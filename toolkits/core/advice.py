"""What in a candidate's sources and errors is worth a look. Advice beside the verdict: it never changes a status.

A kernel can do harm without any of this, and do all of this in honesty: the judge decides by what it measures.
"""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import PurePosixPath

from toolkits.core import scan_cpp, scan_python
from toolkits.core.schema import CheckError, Solution

MAX_LINES = 10
MAX_CHARACTERS = 200
MAX_SOURCE = 300_000
"""Characters of a file that are read."""
PRECISION_FACTOR, PRECISION_SHARE = 30.0, 0.1
"""An error so many times the baseline's, and above this share of the tolerance, looks like cut precision."""
SCANS = {
    ".py": scan_python.scan,
    **dict.fromkeys(
        (".c", ".cc", ".cpp", ".cxx", ".cu", ".hip", ".cl", ".h", ".hh", ".hpp", ".cuh", ".inl"), scan_cpp.scan
    ),
}


def advice(solution: Solution, errors: Sequence[CheckError] = ()) -> list[str]:
    """At most MAX_LINES lines: errors first, then `file:line: what, and why it is worth a look`."""
    lines = [*_of_errors(errors), *_of_sources(solution)]
    if len(lines) > MAX_LINES:
        lines = [*lines[: MAX_LINES - 1], f"and {len(lines) - MAX_LINES + 1} more places that are worth a look"]
    return [line[:MAX_CHARACTERS] for line in lines]


def _of_errors(errors: Sequence[CheckError]) -> list[str]:
    return [line for record in errors if (line := _of_error(record))]


def _of_error(record: CheckError) -> str:
    """A check that the candidate passed far worse than the baseline did on the same content."""
    ours, theirs, allowed = record.beside_baseline, record.baseline_error, record.beside_tolerance
    if ours is None or theirs is None or not allowed:
        return ""
    if ours <= PRECISION_SHARE * allowed or ours <= PRECISION_FACTOR * theirs:
        return ""
    times = f"{ours / theirs:.0f} times the baseline's {theirs:.2g}" if theirs else "where the baseline has none"
    return f"{record.output}: {record.rule} error {ours:.2g} is {times} (allowed {allowed:.2g}): was precision cut?"


@lru_cache(maxsize=64)
def _scanned(suffix: str, text: str) -> tuple[tuple[int, str], ...]:
    """A source that is benchmarked again is scanned once."""
    scan = SCANS.get(suffix)
    return tuple(scan(text)) if scan else ()


def _of_sources(solution: Solution) -> list[str]:
    """Each kind of thing once a file."""
    lines: dict[tuple[str, str], str] = {}
    for file, text in sorted(solution.sources.items()):
        for line, what in _scanned(PurePosixPath(file).suffix.lower(), text[:MAX_SOURCE]):
            lines.setdefault((file, what), f"{file}:{line}: {what}")
    return list(lines.values())
