"""NVIDIA machine code as nvdisasm prints it: instructions with their source lines, and the kinds that matter, counted.

Pure functions of text. Knows no compiler.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_FUNCTION = re.compile(r"^\.text\.(?P<name>\S+):")
_PLACE = re.compile(r'//## File "(?P<file>[^"]*)", line (?P<line>\d+)')
_INSTRUCTION = re.compile(
    r"^\s+/\*(?P<address>[0-9a-f]{4,})\*/\s+(?:@(?P<predicate>!?U?P\w+)\s+)?(?P<opcode>[A-Z][\w.]*)\s*(?P<operands>[^;]*);"
)
_LIVE = re.compile(r"^\s+/\*(?P<address>[0-9a-f]{4,})\*/.*// \|\s*(?P<live>\d+)\s*\|")

TENSOR = re.compile(r"UTC\w*MMA|\w*GMMA|[A-Z]MMA|[HIDQO]MMA")
MEMORY = ("LDG", "STG", "LDS", "STS", "LDL", "STL")
"""Global, shared and local memory; the last pair is registers that did not fit, or arrays indexed at run time."""
_WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32}
_COUNTED = (
    *("FFMA", "FFMA2", "FADD", "FMUL", "DFMA", "DADD", "DMUL", "HFMA2", "HADD2", "HMUL2", "MUFU"),
    *("LDGSTS", "UTMALDG", "UTMASTG", "UBLKCP", "LDSM", "STSM", "LDTM", "STTM", "LD", "ST"),
    *("ATOM", "ATOMG", "ATOMS", "RED", "REDG", "SHFL", "BAR", "SYNCS", "UTCBAR", "WARPSYNC"),
)
TOTAL = "all"


@dataclass(frozen=True)
class Instruction:
    """One line of machine code."""

    address: int
    opcode: str
    """With its modifiers: LDG.E.128."""
    operands: tuple[str, ...]
    predicate: str = ""
    file: str = ""
    line: int | None = None

    @property
    def base(self) -> str:
        return self.opcode.partition(".")[0]

    @property
    def width(self) -> int:
        """Bytes that a thread moves, of an instruction that reads or writes memory."""
        return next((_WIDTHS[part] for part in reversed(self.opcode.split(".")) if part in _WIDTHS), 4)


def functions(text: str) -> dict[str, list[Instruction]]:
    """Mangled name -> instructions, of `nvdisasm -c`, with places if it was `-g` and the code knows its lines."""
    found: dict[str, list[Instruction]] = {}
    code: list[Instruction] = []
    file, number = "", None
    for line in text.splitlines():
        if match := _INSTRUCTION.match(line):
            operands = tuple(part.strip() for part in match["operands"].split("(*")[0].split(",") if part.strip())
            code.append(
                Instruction(
                    int(match["address"], 16), match["opcode"], operands, match["predicate"] or "", file, number
                )
            )
        elif match := _FUNCTION.match(line):
            code = found[match["name"]] = []
            file, number = "", None
        elif match := _PLACE.search(line):
            file, number = match["file"], int(match["line"])
    return found


def mix(code: Iterable[Instruction]) -> dict[str, int]:
    """How often each kind stands in the code: tensor cores first, then by number; widths are bits a thread."""
    counted = Counter(kind for instruction in code if (kind := _kind(instruction)))
    order = sorted(counted, key=lambda kind: (not TENSOR.fullmatch(kind), -counted[kind], kind))
    return {kind: counted[kind] for kind in order}


def _kind(instruction: Instruction) -> str:
    base = instruction.base
    if base in MEMORY:
        return f"{base}.{instruction.width * 8}"
    if TENSOR.fullmatch(base):
        return base
    is_move = base == "HFMA2" and "-RZ" in instruction.operands
    return base if base in _COUNTED and not is_move else ""


def live_registers(text: str) -> dict[str, dict[int, int]]:
    """Mangled name -> address -> general registers alive there, of `nvdisasm -lrm count`."""
    found: dict[str, dict[int, int]] = {}
    alive: dict[int, int] = {}
    for line in text.splitlines():
        if match := _FUNCTION.match(line):
            alive = found[match["name"]] = {}
        elif match := _LIVE.match(line):
            alive[int(match["address"], 16)] = int(match["live"])
    return found


def peak(code: Iterable[Instruction], alive: Mapping[int, int]) -> tuple[int, str] | None:
    """The most registers alive at once and the first `file:line` where that is."""
    if not alive:
        return None
    most = max(alive.values())
    places = {instruction.address: instruction for instruction in code}
    at = next(
        (one for address, live in alive.items() if live == most and (one := places.get(address)) and one.line), None
    )
    return most, f"{at.file}:{at.line}" if at else ""
