"""CSV of rocprofv3, rocprof and rocprof-compute, all generations, as dispatches. Pure functions over recorded text.

Columns are read by name, without regard to case and underscores: every generation spells them differently.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from toolkits.core.errors import InvalidInput
from toolkits.core.profilers.rocprof import Dispatch
from toolkits.core.profilers.tables import TORN, UNEVEN, Row, Table, table
from toolkits.core.schema import HotLine, KernelProfile

COLUMNS: dict[str, tuple[str, ...]] = {
    "name": ("kernelname",),
    "start": ("starttimestamp", "beginns"),
    "end": ("endtimestamp", "endns"),
    "lds": ("ldsblocksize", "groupsegmentsize", "ldsperworkgroup", "lds"),
    "scratch": ("scratchsize", "privatesegmentsize", "scratchperworkitem", "scr"),
    "registers": ("vgprcount", "archvgpr"),
    "accumulation": ("accumvgprcount", "accumvgpr"),
    "scalar": ("sgprcount", "sgpr"),
    "agent": ("agentid", "gpuid"),
    "number": ("dispatchid", "index"),
    "grid": ("gridsize", "grd"),
    "block": ("workgroupsize", "wgr"),
    "process": ("processid", "pid"),
}
OTHERS = {
    "kind",
    "queueid",
    "threadid",
    "tid",
    "kernelid",
    "streamid",
    "wavesize",
    "sig",
    "obj",
    "dispatchns",
    "completens",
    "durationns",
    "correlationid",
    "xccindex",
    "countername",
    "countervalue",
    "lvsgpr",
    *(f"{what}size{axis}" for what in ("grid", "workgroup") for axis in "xyz"),
}
HOT_LINES = 12
_AGAIN = re.compile(r"(?:wavesize|correlationid|xccindex)\d+")
_INDEXED = re.compile(r"(\w+)\[\d+\]")
EMPTY = (
    "the table has a header and no row: nothing was recorded, although rocprofv3 may have ended well. One unknown name"
    " in `--pmc` is enough: check the names by `rocprofv3-avail list`, the kernel filter, and that the program launched"
    " kernels in the process that was profiled"
)


def find(text: str) -> Table | None:
    """A trace, a counter collection, or the wide table of rocprof-compute."""
    for name in ("Kernel_Name", "KernelName"):
        if found := table(text, name):
            return found
    return None


def find_stats(text: str) -> Table | None:
    """The statistics that `rocprofv3 --stats` writes a kernel."""
    return table(text, "Name", "Calls", "TotalDurationNs")


def find_samples(text: str) -> Table | None:
    """What PC sampling wrote, whichever of its kinds."""
    return table(text, "Sample_Timestamp", "Instruction", "Instruction_Comment")


def dispatches(held: Table) -> list[Dispatch]:
    """Every dispatch with its time stamps, its counters, or both."""
    _whole(held)
    names = {_plain(name): name for name in held.header}
    columns = {what: next((names[a] for a in aliases if a in names), "") for what, aliases in COLUMNS.items()}
    if "countername" in names:
        return list(_long(held, columns, names))
    traced = "kind" in names  # a trace of rocprofv3 has no counters, whatever its other columns are called
    counters = [] if traced else [name for name in held.header if _is_counter(name, set(columns.values()))]
    if not counters and not (columns["start"] and columns["end"]):
        raise InvalidInput(
            "neither time stamps nor counters are among its columns: give kernel_trace.csv or counter_collection.csv"
        )
    return [_dispatch(row, columns, names, _wide(row, counters)) for row in held.rows]


def stats(held: Table) -> list[KernelProfile]:
    """The kernels of a statistics table: times only."""
    _whole(held)
    return [
        KernelProfile(
            name=row["Name"],
            launches=calls,
            total_us=(total := _number(row, "TotalDurationNs") / 1e3),
            duration_us=total / calls,
        )
        for row in held.rows
        if (calls := int(_number(row, "Calls")))
    ]


def hot_lines(held: Table) -> list[HotLine]:
    """Where PC samples fell, by the source line of the instruction, else by the instruction itself."""
    _whole(held)
    places = Counter((row["Instruction_Comment"].strip(), row["Instruction"].strip()) for row in held.rows)
    lines: Counter[tuple[str, int, str]] = Counter()
    for (comment, instruction), count in places.items():
        file, _, line = comment.rpartition(":")
        place = (file, int(line), "") if file and line.isdigit() else (comment or "???", 0, instruction)
        lines[place] += count
    return [
        HotLine(file=file, line=line, share=count / len(held.rows), source=source)
        for (file, line, source), count in lines.most_common(HOT_LINES)
    ]


def sampled_lanes(held: Table) -> float | None:
    """Lanes that were on in the mean sample; None where the mask was not recorded."""
    masks = [int(mask) for row in held.rows if (mask := row.get("Exec_Mask", "")).isdigit()]
    return sum(mask.bit_count() for mask in masks) / len(masks) / 64 if masks else None


def _whole(held: Table) -> None:
    if held.torn:
        raise InvalidInput(TORN)
    if held.short or held.long:
        raise InvalidInput(UNEVEN.format(held.short or held.long, "fewer" if held.short else "more"))
    if not held.rows:
        raise InvalidInput(EMPTY)


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "").replace(" ", "")


def _is_counter(name: str, known: Collection[str]) -> bool:
    plain = _plain(name)
    return bool(plain) and plain not in OTHERS and not _AGAIN.fullmatch(plain) and name not in known


def _wide(row: Row, counters: Sequence[str]) -> dict[str, float]:
    """Counters of one row; those that are only given a channel are summed up."""
    found: dict[str, float] = {}
    for name in counters:
        if not row.get(name):
            continue
        channel = _INDEXED.fullmatch(name)
        if not channel:
            found[name] = _number(row, name)
        elif f"{channel[1]}_sum" not in row:
            found[f"{channel[1]}_sum"] = found.get(f"{channel[1]}_sum", 0.0) + _number(row, name)
    return found


def _long(held: Table, columns: Mapping[str, str], names: Mapping[str, str]) -> Iterator[Dispatch]:
    """One row a counter: those of a dispatch are put together."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in held.rows:
        key = tuple(row.get(columns[what], "") for what in ("process", "agent", "number"))
        groups.setdefault(key, []).append(row)
    counter, value = names["countername"], names.get("countervalue", "")
    for rows in groups.values():
        yield _dispatch(rows[0], columns, names, {row[counter]: _number(row, value) for row in rows})


def _dispatch(
    row: Row, columns: Mapping[str, str], names: Mapping[str, str], counters: Mapping[str, float]
) -> Dispatch:
    def whole(what: str) -> int | None:
        return int(_number(row, columns[what])) if row.get(columns[what]) else None

    return Dispatch(
        name=row[columns["name"]].removesuffix(" (.kd)").removesuffix(".kd"),
        start_ns=whole("start"),
        end_ns=whole("end"),
        grid=_size(row, names, "grid", columns),
        block=_size(row, names, "workgroup", columns),
        lds_bytes=whole("lds"),
        scratch_bytes=whole("scratch"),
        registers=whole("registers"),
        accumulation_registers=whole("accumulation"),
        scalar_registers=whole("scalar"),
        agent=row.get(columns["agent"], ""),
        number=whole("number"),
        counters=counters,
    )


def _size(row: Row, names: Mapping[str, str], what: str, columns: Mapping[str, str]) -> tuple[int, int, int] | None:
    """Three columns, or one with the product of them."""
    parts = [names.get(f"{what}size{axis}") for axis in "xyz"]
    if all(parts):
        x, y, z = (int(_number(row, part or "")) for part in parts)
        return x, y, z
    single = columns["grid" if what == "grid" else "block"]
    return (int(_number(row, single)), 1, 1) if row.get(single) else None


def _number(row: Row, name: str) -> float:
    """Integers keep all their digits: time stamps have sixteen."""
    text = (row.get(name) or "").strip()
    try:
        value = int(text) if text.lstrip("-").isdigit() else float(text)
        if not math.isfinite(value):
            raise ValueError
        return value
    except ValueError:
        raise InvalidInput(
            f"column {name or 'Counter_Value'} holds {text[:40]!r}, which is no number with a decimal point: the table"
            " was changed or damaged; record it with LC_ALL=C"
        ) from None
