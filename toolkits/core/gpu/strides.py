"""How far apart neighbouring threads of a warp reach into memory, read from machine code.

Follows each register as a multiple of threadIdx.x through the code once, in its order. What it cannot follow it calls
unknown, and says nothing about: never a guess. Knows one warp of a block whose x axis is a multiple of 32.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from toolkits.core.gpu.sass import Instruction

_REGISTER = re.compile(r"[-~|]*(?P<name>U?R(?:\d+|Z))\b")
_NUMBER = re.compile(r"-?(?:0x[0-9a-f]+|\d+)")
_ADDRESS = re.compile(r"\[(?P<inside>[^\[\]]*)\]$")
_OFFSET = re.compile(r"(?:^|\+)(?P<offset>-?0x[0-9a-f]+)")
_LANE = 5
_AND, _OR = 0xC0, 0xFC


@dataclass(frozen=True)
class Value:
    """What a register holds, as seen along a warp."""

    step: int | None = None
    """From one thread to the next; None: not a number known now."""
    linear: bool = False
    """Where `step` is None: a multiple of threadIdx.x by a size that only the run knows."""
    number: int | None = None
    """Its value, where that is known and every thread's."""

    @property
    def uniform(self) -> bool:
        return self.step == 0


UNKNOWN = Value()
UNIFORM = Value(0)
RUNTIME = Value(linear=True)


@dataclass(frozen=True)
class Access:
    """One instruction that reads or writes memory."""

    instruction: Instruction
    step: Value
    base: tuple[str, int]
    """The register of the address and how often it was written before: the same pair is the same address."""
    offset: int


def accesses(code: Iterable[Instruction]) -> list[Access]:
    """Every access to global and shared memory, with the step of its address in bytes."""
    walk = _Walk()
    return [access for instruction in code if (access := walk.step(instruction))]


class _Walk:
    """The registers as they stand after the instructions so far."""

    def __init__(self) -> None:
        self._held: dict[str, Value] = {}
        self._written: dict[str, int] = {}

    def step(self, instruction: Instruction) -> Access | None:
        access = self._access(instruction) if instruction.base in ("LDG", "STG", "LDS", "STS") else None
        first = instruction.operands[0] if instruction.operands else ""
        target = _REGISTER.fullmatch(first)
        if target and instruction.base not in ("STG", "STS", "STL", "ST", "RED", "REDG"):
            self._write(instruction, target["name"], self._result(instruction, access))
        return access

    def _write(self, instruction: Instruction, name: str, value: Value) -> None:
        if instruction.predicate and name in self._held and self._held[name].step != value.step:
            value = UNKNOWN
        wide = {"LDG": instruction.width, "LDS": instruction.width}.get(instruction.base, 4) // 4
        wide = max(wide, 2 if {"WIDE", "64"} & set(instruction.opcode.split(".")) else 1)
        for register in _following(name, wide):
            self._held[register] = value if register == name else _high(value)
            self._written[register] = self._written.get(register, 0) + 1

    def _access(self, instruction: Instruction) -> Access | None:
        reading = instruction.base.startswith("LD")
        operand = instruction.operands[1 if reading else 0] if len(instruction.operands) > 1 else ""
        match = _ADDRESS.search(operand)
        if not match:
            return None
        inside = match["inside"]
        named = [str(found["name"]) for part in inside.split("+") if (found := _REGISTER.match(part))]
        offset = int(found["offset"], 16) if (found := _OFFSET.search(inside)) else 0
        name = next((one for one in named if one.startswith("R")), "RZ")
        scale = int(found[1]) if (found := re.search(r"\.X(\d+)", inside)) else 1
        value = _times(self._value(name), Value(0, number=scale))
        return Access(instruction, value, (name, self._written.get(name, 0)), offset)

    def _value(self, operand: str) -> Value:
        operand = operand.removesuffix(".reuse")
        if _NUMBER.fullmatch(operand):
            return Value(0, number=int(operand, 0))
        match = _REGISTER.match(operand)
        if not match:
            return UNIFORM  # a constant bank, a label
        name = match["name"]
        if name.endswith("RZ"):
            return Value(0, number=0)
        if name.startswith("U"):
            return self._held.get(name, UNIFORM)
        held = self._held.get(name, UNKNOWN)
        return _times(held, Value(0, number=-1)) if operand.startswith("-") else held

    def _result(self, instruction: Instruction, access: Access | None) -> Value:
        parts = instruction.opcode.split(".")
        given = [part for part in instruction.operands[1:] if not re.match(r"!?U?P(\d|T)", part)]
        values = [self._value(part) for part in given]
        uniform = all(value.uniform for value in values)
        match parts[0].removeprefix("U") if parts[0][0] == "U" and parts[0] != "UNKNOWN" else parts[0]:
            case "S2R" | "CS2R":
                return Value(1) if given[:1] in (["SR_TID.X"], ["SR_LANEID"]) else UNIFORM
            case "LDG" | "LDS":
                return UNIFORM if access and access.step.uniform else UNKNOWN
            case "MOV" if values:
                return values[0]
            case "IADD3" | "IADD" | "VIADD" | "IADD64":
                return _sum(values)
            case "IMAD" if "HI" not in parts and len(values) >= 2:
                return _imad(parts, values)
            case "LEA" if "HI" not in parts and len(values) >= 3:
                shift = values[2].number
                return _plus(_times(values[0], Value(0, number=1 << (shift or 0))), values[1])
            case "SHF" if len(values) >= 3:
                return _shifted(parts, values)
            case "LOP3" if len(values) >= 4:
                return _bits(values, given[3])
            case "SEL" | "IMNMX" | "VIMNMX" if len(values) >= 2:
                return _either(values[0], values[1])
            case _:
                return UNIFORM if uniform or instruction.base.startswith(("U", "S2UR", "R2UR")) else UNKNOWN


def _following(name: str, count: int) -> list[str]:
    letters, number = re.fullmatch(r"(U?R)(\w+)", name).groups()  # pyright: ignore[reportOptionalMemberAccess]
    return [name] if number == "Z" else [f"{letters}{int(number) + more}" for more in range(count)]


def _high(low: Value) -> Value:
    return UNIFORM if low.uniform else UNKNOWN


def _plus(left: Value, right: Value) -> Value:
    if left.step is None or right.step is None:
        known = (left.linear or left.step is not None) and (right.linear or right.step is not None)
        return RUNTIME if known else UNKNOWN
    number = left.number + right.number if left.number is not None and right.number is not None else None
    return Value(left.step + right.step, number=number)


def _sum(values: list[Value]) -> Value:
    total = Value(0, number=0)
    for value in values:
        total = _plus(total, value)
    return total


def _times(left: Value, right: Value) -> Value:
    if right.number is None and left.number is not None:
        left, right = right, left
    if right.number is not None:
        number = left.number * right.number if left.number is not None else None
        if right.number == 0:
            return Value(0, number=0)
        return Value(None if left.step is None else left.step * right.number, left.linear, number)
    if left.uniform and right.uniform:
        return UNIFORM
    if left.uniform or right.uniform:
        varying = right if left.uniform else left
        return UNKNOWN if varying == UNKNOWN else RUNTIME
    return UNKNOWN


def _imad(parts: list[str], values: list[Value]) -> Value:
    if "SHL" in parts or len(values) == 2:
        return _times(values[0], values[1])
    return _plus(_times(values[0], values[1]), values[2])


def _either(left: Value, right: Value) -> Value:
    """One of two: a bound at the edge of a tensor counts for little beside what it bounds."""
    if left.uniform or right.uniform or (left.step, left.linear) == (right.step, right.linear):
        chosen = right if left.uniform else left
        return Value(chosen.step, chosen.linear)
    return UNKNOWN


def _shifted(parts: list[str], values: list[Value]) -> Value:
    """`SHF.L Rd, a, n, RZ` is a << n; `SHF.R.HI Rd, RZ, n, a` is a >> n."""
    shift = values[1].number
    value = values[2] if "R" in parts else values[0]
    if value.uniform:
        return UNIFORM
    if shift is None or value.step is None:
        return UNKNOWN
    if "L" in parts:
        return Value(value.step << shift)
    if shift >= _LANE and value.step == 1:
        return UNIFORM  # the number of the warp
    return Value(value.step >> shift) if value.step % (1 << shift) == 0 else UNKNOWN


def _bits(values: list[Value], table: str) -> Value:
    """A bit operation on three operands, told by its truth table."""
    operation = int(table, 0) if _NUMBER.fullmatch(table) else -1
    left, right = values[0], values[1]
    if left.uniform and right.uniform and values[2].uniform:
        return UNIFORM
    if operation == _OR and (left.uniform or right.uniform):
        return _plus(left, right)
    if operation == _AND and left.step == 1 and right.number is not None:
        low = right.number & ((1 << _LANE) - 1)
        return Value(1) if low == (1 << _LANE) - 1 else UNIFORM if low == 0 else UNKNOWN
    return UNKNOWN
