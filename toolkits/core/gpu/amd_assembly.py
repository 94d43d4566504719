"""Clang's assembly for an AMD GPU, read: kernels, their metadata, their instructions and source lines.

Pure functions over text. Triton's assembly is the same language.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

import yaml

from toolkits.core.schema import Json

_BEGIN = re.compile(r"^.*; -- Begin function (?P<symbol>\S+)\s*$", re.MULTILINE)
_METADATA = re.compile(r"^\s*\.amdgpu_metadata\n(?P<yaml>.*?)^\s*\.end_amdgpu_metadata", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"^; (?P<name>NumVgprs|ScratchSize): (?P<value>\d+)$", re.MULTILINE)
_LOC = re.compile(r"^\s+\.loc\s.*?; (?P<places>.*)$")
_PLACE = re.compile(r"(?P<file>[^\s:\[\]]+):(?P<line>\d+):\d+")
_INSTRUCTION = re.compile(r"^\s+(?P<name>[a-z][a-z0-9_]+)(?:\s|$)")
_ENCODING = re.compile(r"_(?:e32|e64|sdwa|dpp)$")
_NAMED = re.compile(r"(v_mfma|v_smfmac|ds_|global_|buffer_|flat_|scratch_|s_load|s_barrier|v_accvgpr)")


@dataclass(frozen=True)
class Instruction:
    """One line of machine code, and the source line it stems from; `file` is empty where the assembly has no lines."""

    name: str
    file: str = ""
    line: int = 0

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}" if self.line else ""


@dataclass(frozen=True)
class Kernel:
    """One kernel as the assembly has it."""

    symbol: str
    facts: Json
    """Its entry in the code object's metadata."""
    code: list[Instruction]
    registers: int
    """Ordinary vector registers; the metadata's count includes the accumulation registers."""

    def count(self, fact: str) -> int:
        return int(self.facts.get(f".{fact}") or 0)


def kernels(assembly: str) -> list[Kernel]:
    """Every kernel of an assembly, in its order."""
    match = _METADATA.search(assembly)
    found: Json = yaml.load(match["yaml"], _loader()) if match else {}
    listed = cast(list[Json], found.get("amdhsa.kernels") or [])
    chunks = _chunks(assembly)
    return [_kernel(facts, chunks.get(str(facts[".name"]), "")) for facts in listed]


def _loader() -> type[yaml.SafeLoader]:
    """The fast one where PyYAML was built with it."""
    return cast(type[yaml.SafeLoader], getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def _chunks(assembly: str) -> dict[str, str]:
    begins = list(_BEGIN.finditer(assembly))
    ends = [begin.start() for begin in begins[1:]] + [len(assembly)]
    return {begin["symbol"]: assembly[begin.end() : end] for begin, end in zip(begins, ends, strict=True)}


def _kernel(facts: Json, chunk: str) -> Kernel:
    comments = {match["name"]: int(match["value"]) for match in _COMMENT.finditer(chunk)}
    total, accumulation = int(facts[".vgpr_count"]), int(facts.get(".agpr_count") or 0)
    registers = comments.get("NumVgprs", total - accumulation)
    code = list(_instructions(chunk.partition(".Lfunc_end")[0]))
    return Kernel(str(facts[".name"]), facts, code, registers)


def _instructions(text: str) -> Iterator[Instruction]:
    file, line = "", 0
    for row in text.splitlines():
        if match := _LOC.match(row):
            file, line = _place(match["places"]) or (file, line)
        elif match := _INSTRUCTION.match(row):
            yield Instruction(_ENCODING.sub("", match["name"]), file, line)


def _place(places: str) -> tuple[str, int] | None:
    """The innermost place in the solution's own files, whose names are relative; else the outermost; line 0 is none."""
    found = [
        (match["file"].removeprefix("./"), int(match["line"]))
        for match in _PLACE.finditer(places)
        if match["line"] != "0"
    ]
    own = [place for place in found if not place[0].startswith("/")]
    return (own or found[::-1] or [None])[0]


def instruction_mix(code: list[Instruction]) -> dict[str, int]:
    """Memory and matrix instructions by their names, other vector and scalar ones as two sums; most frequent first."""
    counted = Counter(_kind(instruction.name) for instruction in code)
    return dict(counted.most_common())


def _kind(name: str) -> str:
    if _NAMED.match(name):
        return name
    return "other vector" if name.startswith("v_") else "other scalar"
