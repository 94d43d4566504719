"""Messages of nvcc, its front end, ptxas and NVRTC as diagnostics, in words that say what to do."""

import re
from collections.abc import Mapping
from typing import Literal

from toolkits.core import diagnostics
from toolkits.core.gpu.arch import architecture
from toolkits.core.schema import Diagnostic

Severity = Literal["error", "warning", "note"]

_FRONT = re.compile(
    r"^(?P<file>[^\s(][^(]*)\((?P<line>\d+)\): (?P<severity>catastrophic error|error|warning|remark)"
    r"(?: #[\w-]+)?: (?P<message>.*)$"
)
_IN_PTX = re.compile(r"^ptxas (?P<file>\S+), line (?P<line>\d+); (?P<severity>error|warning)\s*: (?P<message>.*)$")
_OF_TOOL = re.compile(r"^(?P<tool>nvcc|ptxas|nvlink|nvrtc)\s+(?P<severity>error|fatal|warning)\s*: (?P<message>.*)$")
_MANGLED = re.compile(r"\b_Z\w+")
_TOO_MUCH_SHARED = re.compile(
    r"Entry function '(?P<name>[^']+)' uses too much shared data \((?P<wants>0x[0-9a-f]+) bytes"
)
_UNSUPPORTED = re.compile(r"(?:Instruction|Feature) '(?P<what>[^']+)' not supported on \.target '(?P<target>\w+)'")
_UNRESOLVED = re.compile(r"Unresolved extern function '(?P<name>[^']+)'")
_BEYOND_TABLE = re.compile(r"Unsupported gpu architecture '(?P<target>\w+)'")
_EMPTY = re.compile(r"Ptx assembly aborted|cannot be compiled for architecture|minnctapersm will be ignored")
_NEEDS = (
    ("wgmma", "sm_90a", "Hopper's warpgroup instructions"),
    ("tcgen05", "sm_100a", "Blackwell's tensor memory instructions"),
    ("setmaxnreg", "sm_90a or sm_100a", "registers moved between warpgroups"),
    (".cta_group", "sm_100a", "Blackwell's pairs of blocks"),
    ("cp.async.bulk", "sm_90 or newer", "bulk copies (TMA)"),
    ("cp.async", "sm_80 or newer", "asynchronous copies"),
    ("mbarrier", "sm_80 or newer", "barriers in shared memory"),
)
"""Beginning of an instruction or feature, what has it, and what it is."""
_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)")
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"')


def mangled(text: str) -> list[str]:
    """The names in a log that a compiler mangled, each once."""
    return list(dict.fromkeys(_MANGLED.findall(text)))


def parse(log: str, target: str, ptx: Mapping[str, str], names: Mapping[str, str]) -> list[Diagnostic]:
    """Errors first. `ptx` has the text of assembler files by name, `names` what mangled names stand for."""
    found = [one for line in log.splitlines() if (one := _line(line.rstrip(), target, ptx, names))]
    host = [one for one in diagnostics.parse(log) if one.file or "nvcc" not in one.message]
    order = {"error": 0, "warning": 1, "note": 2}
    return sorted(dict.fromkeys([*found, *host]), key=lambda one: order[one.severity])[: diagnostics.MOST]


def _line(line: str, target: str, ptx: Mapping[str, str], names: Mapping[str, str]) -> Diagnostic | None:
    if match := _FRONT.match(line):
        return Diagnostic(
            severity=_severity(match["severity"]),
            message=match["message"],
            file=match["file"].removeprefix("./"),
            line=int(match["line"]),
        )
    if _EMPTY.search(line):
        return None  # said better by another line
    if match := _IN_PTX.match(line):
        file, number = source_line(ptx.get(match["file"], ""), int(match["line"])) or ("", None)
        message = _plain(match["message"], target, names)
        return Diagnostic(severity=_severity(match["severity"]), message=message, file=file, line=number)
    if match := _OF_TOOL.match(line):
        message = _plain(match["message"], target, names)
        return Diagnostic(severity=_severity(match["severity"]), message=message)
    return None


def _severity(word: str) -> Severity:
    return "note" if word == "remark" else "warning" if word == "warning" else "error"


def _plain(message: str, target: str, names: Mapping[str, str]) -> str:
    """What ptxas means, and what to do."""
    if match := _TOO_MUCH_SHARED.search(message):
        return _too_much_shared(names.get(match["name"], match["name"]), int(match["wants"], 16), target)
    if match := _UNSUPPORTED.search(message):
        what, has = match["what"], match["target"]
        known = next(((needs, means) for start, needs, means in _NEEDS if what.startswith(start)), None)
        why = f": {known[1]} need {known[0]}, build for that target" if known else ""
        return f"{what} does not exist on {has}{why}"
    if match := _UNRESOLVED.search(message):
        name = names.get(match["name"], match["name"])
        return f"device function {name} is declared but not defined: define it in the same file, or include its source"
    if match := _BEYOND_TABLE.search(message):
        return f"this nvcc does not know {match['target']}: name another target, or install a newer toolkit"
    for name, text in names.items():
        message = message.replace(name, text)
    return message


def _too_much_shared(name: str, wants: int, target: str) -> str:
    limits = architecture(target)
    text = f"kernel {name}: {wants} bytes of static shared memory are more than {target} allows"
    if not limits:
        return text
    if wants > limits.block_shared_bytes:
        return f"{text}: a block has at most {limits.block_shared_bytes}, so keep less there at once"
    return (
        f"{text} ({limits.default_shared_bytes}): declare it `extern __shared__`, pass the size at the launch and"
        f" raise cudaFuncAttributeMaxDynamicSharedMemorySize; so up to {limits.block_shared_bytes} are possible"
    )


def source_line(ptx: str, number: int) -> tuple[str, int] | None:
    """Source file and line of a line of assembler, by the `.loc` before it (nvcc -lineinfo)."""
    lines = ptx.splitlines()
    found = next((match for line in reversed(lines[:number]) if (match := _LOC.match(line))), None)
    files = {match[1]: match[2] for line in lines if (match := _FILE.match(line))}
    return (files[found[1]], int(found[2])) if found and found[1] in files else None
