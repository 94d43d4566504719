"""What `ptxas -v` says of each kernel. Pure functions of its text; NVRTC's log and Triton's ptxas speak the same."""

import re
from dataclasses import dataclass, replace

_ENTRY = re.compile(r"info\s*: Compiling entry function '(?P<name>[^']+)' for '(?P<target>\w+)'")
_PROPERTIES = re.compile(r"info\s*: Function properties for (?P<name>\S+)")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"info\s*: Used (?P<registers>\d+) registers(?P<rest>.*)")
_BARRIERS = re.compile(r"used (\d+) barriers")
_SHARED = re.compile(r"(\d+) bytes smem")


@dataclass(frozen=True)
class Resources:
    """Of one kernel on one architecture; `name` is mangled."""

    name: str
    target: str
    registers: int | None = None
    stack_bytes: int | None = None
    spill_stores_bytes: int | None = None
    spill_loads_bytes: int | None = None
    shared_bytes: int = 0
    """Static, as the source declares it."""
    barriers: int | None = None


def resources(log: str) -> list[Resources]:
    """Every kernel of a log, in its order; functions that are no kernels are left out."""
    found: dict[str, Resources] = {}
    entry = properties = ""
    for line in log.splitlines():
        if match := _ENTRY.search(line):
            entry = properties = match["name"]
            found[entry] = Resources(entry, match["target"])
        elif match := _PROPERTIES.search(line):
            properties = match["name"]
        elif entry and properties == entry:
            found[entry] = _with(found[entry], line)
    return list(found.values())


def _with(known: Resources, line: str) -> Resources:
    if match := _STACK.search(line):
        stack, stores, loads = (int(number) for number in match.groups())
        return replace(known, stack_bytes=stack, spill_stores_bytes=stores, spill_loads_bytes=loads)
    if match := _USED.search(line):
        barriers, shared = _BARRIERS.search(match["rest"]), _SHARED.search(match["rest"])
        return replace(
            known,
            registers=int(match["registers"]),
            barriers=int(barriers[1]) if barriers else known.barriers,
            shared_bytes=int(shared[1]) if shared else 0,
        )
    return known
