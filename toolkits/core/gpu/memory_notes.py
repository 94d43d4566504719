"""What a kernel's memory accesses could do better, in words with places. Knows no compiler."""

from collections.abc import Callable, Iterable, Mapping
from math import gcd

from toolkits.core.gpu.sass import Instruction
from toolkits.core.gpu.strides import Access, accesses

WIDEST = 16
"""Bytes that one instruction moves for a thread on every architecture."""
_BANKS, _BANK_BYTES = 32, 4
_SECTOR = 32
_NAMES = {"LDG": "loads", "STG": "stores", "LDS": "shared loads", "STS": "shared stores"}
MOST_PLACES = 3


def memory_notes(code: Iterable[Instruction]) -> list[str]:
    """Scattered global accesses first, then bank conflicts, then loads narrower than need be."""
    found = accesses(code)
    outside = [access for access in found if access.instruction.base in ("LDG", "STG")]
    inside = [access for access in found if access.instruction.base in ("LDS", "STS")]
    beside: dict[tuple[object, int], set[int]] = {}
    for access in outside:
        beside.setdefault((access.base, access.instruction.width), set()).add(access.offset)
    split = {id(access) for access in outside if _is_part_of_wider(access, beside)}
    scattered = [access for access in outside if _scattered(access) and id(access) not in split]
    return [
        *_each(scattered, _scattered_text),
        *_each([access for access in inside if _ways(access) > 1], _conflict_text),
        *_each([access for access in outside if id(access) in split], _split_text),
        *_narrow(outside),
    ]


def _scattered(access: Access) -> bool:
    step = access.step
    return step.linear if step.step is None else abs(step.step) > access.instruction.width


def _is_part_of_wider(access: Access, offsets: Mapping[tuple[object, int], set[int]]) -> bool:
    """Whether instructions with the same address read the bytes that it jumps over, so that one wider one would do."""
    step, width = access.step.step, access.instruction.width
    if step is None or not width < abs(step) <= WIDEST:
        return False
    around = range(access.offset - abs(step) + 1, access.offset + abs(step))
    return len(offsets[access.base, width].intersection(around)) > 1


def _ways(access: Access) -> int:
    """How many threads of a warp meet in one bank; threads that read the same word do not."""
    step = access.step.step
    if not step or step % _BANK_BYTES or access.instruction.width > _BANK_BYTES:
        return 1
    return gcd(abs(step) // _BANK_BYTES, _BANKS)


def _each(found: list[Access], text: Callable[[Access, str], str]) -> list[str]:
    """One note a place, kind and step: an unrolled loop is one place."""
    groups: dict[tuple[str, int | None, str, int | None], list[Access]] = {}
    for access in found:
        one = access.instruction
        groups.setdefault((one.file, one.line, one.base, access.step.step), []).append(access)
    notes = [text(group[0], _where(group)) for group in groups.values()]
    more = len(notes) - MOST_PLACES
    return [*notes[:MOST_PLACES], *([f"and {more} more places like that"] if more > 0 else [])]


def _where(group: list[Access]) -> str:
    one = group[0].instruction
    place = f"{one.file}:{one.line}: " if one.line else ""
    return f"{place}{len(group)} x {one.base}.{one.width * 8}"


def _scattered_text(access: Access, where: str) -> str:
    step, name = access.step.step, _NAMES[access.instruction.base]
    apart = "a size known only at run time" if step is None else f"{abs(step)} bytes"
    sectors = 32 if step is None else max(1, min(32, abs(step) * 32 // _SECTOR))
    needed = max(1, access.instruction.width * 32 // _SECTOR)
    return (
        f"uncoalesced {name} at {where}: neighbouring threads are {apart} apart, so a warp touches {sectors} sectors"
        f" instead of {needed}; let threadIdx.x run along the contiguous axis, or go through shared memory"
    )


def _conflict_text(access: Access, where: str) -> str:
    return (
        f"bank conflict at {where}: neighbouring threads are {access.step.step} bytes apart, {_ways(access)} of a warp"
        " meet in one bank; pad the row by one element or swizzle"
    )


def _split_text(access: Access, where: str) -> str:
    step = abs(access.step.step or 0)
    return (
        f"narrow {_NAMES[access.instruction.base]} at {where}: each thread moves {step} bytes that lie together in"
        f" pieces of {access.instruction.width}; one access of {step * 8} bits (a vector type such as float{step // 4})"
        " would do"
    )


def _narrow(outside: list[Access]) -> list[str]:
    """Where no global load is as wide as it could be: only where all that is known is contiguous."""
    loads = [access for access in outside if access.instruction.base == "LDG"]
    plain = [access for access in loads if access.step.step == access.instruction.width]
    widest = max((access.instruction.width for access in loads), default=WIDEST)
    if not plain or widest >= WIDEST:
        return []
    narrowest = min(plain, key=lambda access: access.instruction.width)
    width = narrowest.instruction.width
    same_place = [access for access in plain if access.instruction.line == narrowest.instruction.line]
    return [
        f"narrow loads at {_where(same_place)}: {width} bytes a thread where {WIDEST} are possible; give each thread"
        f" {WIDEST // width} elements as one vector (LDG.128) where the address allows it"
    ]
