"""What sanitizers print, as findings in one vocabulary. Pure functions over text that a solution may have added to."""

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import PurePosixPath

from toolkits.core.schema import Defect, SanitizerFinding

MOST_FRAMES = 5
NULL_PAGE = 4096
DETAIL_CHARS = 240
_ASAN = re.compile(r"ERROR: AddressSanitizer: (?P<what>.*)")
_ACCESS = re.compile(r"^(?P<access>READ|WRITE) of size (?P<bytes>\d+) at \S+ thread (?P<thread>\w+)", re.MULTILINE)
_SIGNALLED = re.compile(r"The signal is caused by a (READ|WRITE) memory access")
_ADDRESS = re.compile(r"address (0x[0-9a-f]+)")
_REGION = re.compile(r"^0x[0-9a-f]+ is located (.*)$|^\s*\[\d+, \d+\) '.*' <== (.*)$", re.MULTILINE)
_FRAME = re.compile(r"^ +#\d+ 0x[0-9a-f]+ in (?P<function>.+?) (?P<place>\S+)$|^ +#\d+ (?P<other>.+?) (?P<at>\S+) \(")
_UBSAN = re.compile(r"^(?P<file>[^:\s]+):(?P<line>\d+):\d+: runtime error: (?P<what>.*)$")
_RACE = re.compile(
    r"^  (?:Previous )?(?:atomic )?(?P<access>[Rr]ead|[Ww]rite) of size (?P<bytes>\d+) at (?P<address>\S+)"
    r" by (?P<thread>.*?):?$"
)
_OCL = re.compile(
    r"^(?P<what>Invalid (?P<access>read|write) of size (?P<bytes>\d+) at (?P<space>\w+) memory address (?P<address>\S+)"
    r"|(?P<race>\S+ data race) at \w+ memory address (?P<at>\S+)|Uninitialized value.*|Work-group divergence.*)$"
)
_OCL_PLACE = re.compile(r"At line (\d+) \(column \d+\) of (\S+?):?$", re.MULTILINE)
_OCL_ENTITY = re.compile(r"(?:Entity|First entity):\s+(.*)$", re.MULTILINE)
_OCL_KERNEL = re.compile(r"Kernel: (\w+)")

_OF_ASAN: dict[str, Defect] = {
    "heap-use-after-free": "use_after_free",
    "stack-use-after-return": "use_after_free",
    "stack-use-after-scope": "use_after_free",
    "heap-buffer-overflow": "out_of_bounds",
    "stack-buffer-overflow": "out_of_bounds",
    "stack-buffer-underflow": "out_of_bounds",
    "dynamic-stack-buffer-overflow": "out_of_bounds",
    "global-buffer-overflow": "out_of_bounds",
    "container-overflow": "out_of_bounds",
    "negative-size-param": "out_of_bounds",
    "attempting double-free": "bad_free",
    "attempting free": "bad_free",
    "alloc-dealloc-mismatch": "bad_free",
}
_OF_UBSAN: dict[str, Defect] = {
    "signed integer overflow": "signed_overflow",
    "null pointer": "null_pointer",
    "misaligned address": "misaligned",
    "index ": "out_of_bounds",
    "insufficient space": "out_of_bounds",
}


def native(output: str, sources: Collection[str]) -> list[SanitizerFinding]:
    """Of ASan, UBSan and TSan, in the order in which they were printed; each kind and place once."""
    return once([*_undefined(output, sources), *_addresses(output, sources), *_races(output, sources)])


def oclgrind(log: str) -> list[SanitizerFinding]:
    """Of oclgrind's log: blocks of lines with an empty line between them."""
    found = [finding for block in re.split(r"\n\s*\n(?=\S)", log) if (finding := _of_oclgrind(block))]
    return once(found)


def once(findings: Sequence[SanitizerFinding]) -> list[SanitizerFinding]:
    return list({(one.kind, one.file, one.line): one for one in reversed(findings)}.values())[::-1]


def _addresses(output: str, sources: Collection[str]) -> Iterator[SanitizerFinding]:
    for block in re.split(r"^=+$", output, flags=re.MULTILINE):
        head = _ASAN.search(block)
        if not head:
            continue
        text = block[head.start() :]
        access, address, region = _ACCESS.search(text), _ADDRESS.search(head["what"]), _REGION.search(text)
        signalled = _SIGNALLED.search(text)
        frames = _frames(text.splitlines())
        what = head["what"].split(" on ")[0].split(" (")[0]
        near = f", {region[1] or region[2]}" if region else ""
        word = access["access"] if access else signalled[1] if signalled else ""
        yield _placed(frames, sources).model_copy(
            update={
                "tool": "asan",
                "kind": _kind_of(what, address[1] if address else ""),
                "access": word.lower(),
                "bytes": int(access["bytes"]) if access else None,
                "thread": access["thread"] if access else "",
                "address": address[1] if address else "",
                "detail": f"{what}{near}"[:DETAIL_CHARS],
            }
        )


def _kind_of(what: str, address: str) -> Defect:
    if what.startswith("SEGV"):
        return "null_pointer" if address and int(address, 16) < NULL_PAGE else "invalid_access"
    known: list[Defect] = [kind for words, kind in _OF_ASAN.items() if what.startswith(words)]
    return known[0] if known else "invalid_access"


def _undefined(output: str, sources: Collection[str]) -> Iterator[SanitizerFinding]:
    lines = output.splitlines()
    for number, line in enumerate(lines):
        match = _UBSAN.match(line)
        if match:
            what = match["what"]
            known: list[Defect] = [kind for words, kind in _OF_UBSAN.items() if words in what]
            kind = known[0] if known else "undefined_behaviour"
            file, place = _source(match["file"], sources), int(match["line"])
            frames = _frames(lines[number + 1 :])
            yield _placed(frames, sources).model_copy(
                update={
                    "tool": "ubsan",
                    "kind": kind,
                    "access": {"load": "read", "stor": "write"}.get(what[:4], ""),
                    "detail": what[:DETAIL_CHARS],
                    "file": file,
                    "line": place,
                }
            )


def _races(output: str, sources: Collection[str]) -> Iterator[SanitizerFinding]:
    for block in output.split("WARNING: ThreadSanitizer: ")[1:]:
        lines = block.split("\n==================")[0].splitlines()
        heads = [(number, match) for number, line in enumerate(lines) if (match := _RACE.match(line))]
        if not lines[0].startswith("data race") or not heads:
            continue
        number, access = heads[0]
        frames = _frames(lines[number + 1 :])
        other = _placed(_frames(lines[heads[1][0] + 1 :]), sources) if len(heads) > 1 else None
        beside = f", {heads[1][1][0].strip().rstrip(':')} at {other.file}:{other.line}" if other else ""
        yield _placed(frames, sources).model_copy(
            update={
                "tool": "tsan",
                "kind": "data_race",
                "access": access["access"].lower(),
                "bytes": int(access["bytes"]),
                "thread": access["thread"],
                "address": access["address"],
                "detail": f"{access[0].strip().rstrip(':')}{beside}"[:DETAIL_CHARS],
            }
        )


def _of_oclgrind(block: str) -> SanitizerFinding | None:
    head = next((match for line in block.splitlines() if (match := _OCL.match(line))), None)
    if not head:
        return None
    places = [(file, int(line)) for line, file in _OCL_PLACE.findall(block)]
    entity, kernel = _OCL_ENTITY.search(block), _OCL_KERNEL.search(block)
    kind: Defect = "data_race" if head["race"] else "out_of_bounds" if head["access"] else "undefined_behaviour"
    beside = f", other access at {places[1][0]}:{places[1][1]}" if len(places) > 1 else ""
    return SanitizerFinding.model_validate(
        {
            "tool": "oclgrind",
            "kind": "uninitialised" if head["what"].startswith("Uninit") else kind,
            "file": places[0][0] if places else "",
            "line": places[0][1] if places else None,
            "function": kernel[1] if kernel else "",
            "thread": " ".join(entity[1].split()) if entity else "",
            "access": head["access"] or "",
            "bytes": int(head["bytes"]) if head["bytes"] else None,
            "address": head["address"] or head["at"] or "",
            "detail": f"{head['what']}{beside}"[:DETAIL_CHARS],
        }
    )


Frame = tuple[str, str]
"""Function, and file:line."""


def _frames(lines: Sequence[str]) -> list[Frame]:
    """The calls of the first stack in these lines, innermost first."""
    found: list[Frame] = []
    for line in lines:
        match = _FRAME.match(line)
        if match:
            found.append((match["function"] or match["other"], match["place"] or match["at"]))
        elif found:
            break
    return found


def _placed(frames: Sequence[Frame], sources: Collection[str]) -> SanitizerFinding:
    """A finding at the innermost call that lies in the solution."""
    own = next(((function, place) for function, place in frames if _source(place, sources)), None)
    function, place = own or (frames[0] if frames else ("", ""))
    parts = place.split(":")
    shown = [f"{name} at {at}" for name, at in frames if _source(at, sources)][:MOST_FRAMES]
    return SanitizerFinding(
        tool="asan",
        kind="invalid_access",
        file=_source(place, sources) or PurePosixPath(parts[0]).name,
        line=int(parts[1]) if len(parts) > 1 and parts[1].isdigit() else None,
        function=function.split("(")[0],
        frames=shown,
    )


def _source(place: str, sources: Collection[str]) -> str:
    """The solution's file that a place lies in; empty: another's."""
    file = place.split(":")[0].removeprefix("./")
    return file if file in sources else ""
