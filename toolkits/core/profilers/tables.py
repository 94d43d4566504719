"""Finds the CSV table in recorded text: behind log lines, in any encoding and with any delimiter. Pure."""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from toolkits.core.errors import InvalidInput

Row = Mapping[str, str]
DELIMITERS = (",", ";", "\t")
FIELD_LIMIT_BYTES = 1_000_000
UNEVEN = "{} of its rows have {} fields than its header: the table was changed or damaged; record it with LC_ALL=C"
TORN = (
    "the table ends in the middle of a row: the file was cut, copy it again or record it anew (when it is whole, end"
    " its last line)"
)


@dataclass(frozen=True)
class Table:
    """A header, its rows, and what stood around them."""

    header: tuple[str, ...]
    rows: Sequence[Row]
    log: str
    """Lines before the header and after the last row."""
    torn: bool
    """The file ends within a row, or without a line end after its last."""
    short: int
    """Rows with fewer fields than the header."""
    long: int
    """Rows with more of them: a separator stands unquoted in a value, and nothing after it is where it should be."""

    def has(self, *names: str) -> bool:
        return set(names) <= set(self.header)


def text_of(content: bytes) -> str:
    """Text of a recorded file; redirection in PowerShell writes UTF-16."""
    for mark, encoding in ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8-sig")):
        if content.startswith(mark):
            return content.decode(encoding, errors="replace")
    if b"\0" in content[:4096]:
        raise InvalidInput("a binary file of no kind that is read here")
    return content.decode("utf-8", errors="replace")


def table(text: str, *needed: str) -> Table | None:
    """The first table whose header names all of `needed`; None where there is none."""
    lines = text.splitlines()
    for index, line in enumerate(lines):
        if all(name in line for name in needed):
            for delimiter in DELIMITERS:
                header = _header(line, delimiter)
                if set(needed) <= set(header):
                    last = max(header.index(name) for name in needed)
                    return _read(text, index, header, delimiter, last)
    return None


def _header(line: str, delimiter: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in next(csv.reader([line], delimiter=delimiter)))


def _read(text: str, at: int, header: tuple[str, ...], delimiter: str, needed: int) -> Table:
    lines = text.splitlines()
    # Without its line end, or with an open quote, nobody knows how much of the last value is there.
    cut = not text.endswith(("\n", "\r")) or _open_quote(lines[at:])
    csv.field_size_limit(FIELD_LIMIT_BYTES)
    reader = csv.reader(io.StringIO("\n".join(lines[at + 1 :])), delimiter=delimiter)
    try:
        read = [fields for fields in reader if fields and any(field.strip() for field in fields)]
    except csv.Error as error:
        raise InvalidInput(f"the table is broken ({error}): copy it again or record it anew") from None
    rows = [fields for fields in read if _is_row(fields, needed)]
    stray = [delimiter.join(fields) for fields in read if not _is_row(fields, needed)]
    named = [dict(zip(header, row, strict=False)) for row in rows]
    short = sum(len(row) < len(header) for row in rows)
    long = sum(any(field.strip() for field in row[len(header) :]) for row in rows)
    return Table(header, named, "\n".join([*lines[:at], *stray]), _torn(read, rows, header) or cut, short, long)


def _is_row(fields: Sequence[str], needed: int) -> bool:
    """Lines of the tool, or of the program that was profiled, may stand among the rows."""
    return len(fields) > needed and not fields[0].startswith("==")


def _torn(read: Sequence[Sequence[str]], rows: Sequence[Sequence[str]], header: Sequence[str]) -> bool:
    """The last row is shorter than every other, or breaks off before it can be told to be one."""
    if not read:
        return False
    last, others = read[-1], [len(row) for row in rows[:-1]]
    if rows and last is rows[-1]:
        return len(last) < min([*others, len(header)])
    return bool(last[0].strip().isdigit() or (rows and last[0] == rows[-1][0]))


def _open_quote(lines: Sequence[str]) -> bool:
    last = next((line for line in reversed(lines) if line.strip()), "")
    return last.count('"') % 2 == 1
