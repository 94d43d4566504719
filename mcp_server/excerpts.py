"""The line of a solution's source that a compiler or an exception speaks of, quoted. Pure functions over text."""

import re
from collections.abc import Mapping, Sequence

from mcp_server.schema import DiagnosticLine
from toolkits.core.schema import Diagnostic

MAX_DIAGNOSTICS = 5
WIDTH = 100
"""Of a quoted line; a longer one is cut around the column."""
TAB = 8
_PLACE = re.compile(r"(?<![\w./])([\w./-]+):(\d+)\b")
"""`main.py:3`, as the judge's worker tells where an exception was raised."""


def first_error(diagnostics: Sequence[Diagnostic], sources: Mapping[str, str]) -> str:
    """The first error with its source line, and how many more there are; empty when there is none."""
    errors = [d for d in diagnostics if d.severity == "error"]
    if not errors:
        return ""
    first, more = errors[0], len(errors) - 1
    quoted = line_of(sources, first.file, first.line, first.column)
    rest = f"and {more} further error{'s' if more > 1 else ''}" if more else ""
    return "\n".join(part for part in (f"{place(first)} {clip(first.message, 300)}".strip(), quoted, rest) if part)


def of_exception(detail: str, sources: Mapping[str, str]) -> str:
    """The source line of the first place named in the text that lies in the solution; empty when none does."""
    for file, line in _PLACE.findall(detail):
        named = next((name for name in sources if name == file or name.endswith(f"/{file}")), "")
        if quoted := line_of(sources, named, int(line), None):
            return quoted
    return ""


def line_of(sources: Mapping[str, str], file: str, line: int | None, column: int | None) -> str:
    """A line of a source with its number, and a caret under the column; empty when the sources have no such line."""
    lines = sources[name].split("\n") if (name := file.removeprefix("./")) in sources else []
    if not line or not 0 < line <= len(lines):
        return ""
    text = lines[line - 1].rstrip().expandtabs(TAB)
    at = min(max((column or 1) - 1, 0), len(text))
    start = 0 if len(text) <= WIDTH or at < WIDTH * 2 // 3 else at - WIDTH // 2
    head = f"{line:5} | "
    quoted = head + text[start : start + WIDTH]
    return f"{quoted}\n{' ' * (len(head) - 2)}| {' ' * (at - start)}^" if column else quoted


def diagnostic_lines(diagnostics: Sequence[Diagnostic]) -> list[DiagnosticLine]:
    """The first few, in the compiler's order."""
    return [DiagnosticLine(where=place(d), message=clip(d.message, 300)) for d in diagnostics[:MAX_DIAGNOSTICS]]


def place(diagnostic: Diagnostic) -> str:
    """file:line:column, as far as they are known."""
    parts = [diagnostic.file, diagnostic.line, diagnostic.column]
    return ":".join(str(part) for part in parts if part is not None and part != "")


def clip(text: str, limit: int) -> str:
    """Head and tail of a long text."""
    if len(text) <= limit:
        return text
    tail = max(limit // 3 - 5, 0)
    return f"{text[: limit - tail - 5]} ... {text[len(text) - tail :]}"
