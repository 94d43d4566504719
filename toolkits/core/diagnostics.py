"""Compiler output as diagnostics. Pure functions over the text of g++, clang++ and their linkers."""

import re
from typing import Literal

from toolkits.core.schema import Diagnostic

MOST = 20
Severity = Literal["error", "warning", "note"]

_IN_FILE = re.compile(
    r"^(?P<file>[^:\s][^:]*):(?P<line>\d+):(?:(?P<column>\d+):)? "
    r"(?P<severity>fatal error|error|warning|note): (?P<message>.*)$"
)
_OF_TOOL = re.compile(r"^(?P<tool>[\w+./-]+): (?P<severity>fatal error|error|warning|note): (?P<message>.*)$")
_UNDEFINED = re.compile(r"^(?P<where>.*?): (?P<message>undefined reference to .*|multiple definition of .*)$")
_ORDER: dict[Severity, int] = {"error": 0, "warning": 1, "note": 2}


def parse(output: str) -> list[Diagnostic]:
    """Errors first, then warnings and notes, each in the compiler's order and once."""
    found = dict.fromkeys(diagnostic for line in output.splitlines() if (diagnostic := _parse_line(line)))
    return sorted(found, key=lambda diagnostic: _ORDER[diagnostic.severity])[:MOST]


def with_error(diagnostics: list[Diagnostic], output: str) -> list[Diagnostic]:
    """The diagnostics of a failed build: when the compiler named no error, its last words are one."""
    if any(diagnostic.severity == "error" for diagnostic in diagnostics):
        return diagnostics
    words = [line for line in output.splitlines() if line.strip()]
    return [Diagnostic(severity="error", message=words[-1] if words else "failed without a word"), *diagnostics]


def _parse_line(line: str) -> Diagnostic | None:
    if match := _IN_FILE.match(line):
        column = match["column"]
        return Diagnostic(
            severity=_severity(match["severity"]),
            message=match["message"],
            file=match["file"].removeprefix("./"),
            line=int(match["line"]),
            column=int(column) if column else None,
        )
    if match := _OF_TOOL.match(line):
        return Diagnostic(severity=_severity(match["severity"]), message=f"{match['tool']}: {match['message']}")
    if match := _UNDEFINED.match(line):
        file = match["where"].rpartition("ld: ")[2].partition(":")[0]
        return Diagnostic(severity="error", message=match["message"], file=file)
    return None


def _severity(word: str) -> Severity:
    return "error" if "error" in word else "warning" if word == "warning" else "note"
