"""rocprofv3's database (rocpd, SQLite) as dispatches. Reads only, through the views that every schema version has."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path

from toolkits.core.errors import InvalidInput
from toolkits.core.profilers.rocprof import Dispatch
from toolkits.core.profilers.rocprof_json import Recording

MAGIC = b"SQLite format 3\0"
NOT_ROCPD = (
    "a database without rocpd's view `kernels`: it is no output of rocprofv3, of a schema that is not known here, or"
    " cut. A report of Nsight Systems (.sqlite, .nsys-rep) holds no counters: record the kernel with ncu instead"
)
DAMAGED = "the database is cut or damaged ({}): copy it again, together with its -wal file if there is one"
EMPTY = (
    "no kernel dispatch is in the database: record it by `rocprofv3 --kernel-trace -- program`, and see that the"
    " program launches kernels in the process that is profiled"
)
Row = Mapping[str, object]


def parse(path: Path) -> Recording:
    """Every dispatch, with its counters where there are some."""
    if missing := _missing_bytes(path):
        raise InvalidInput(DAMAGED.format(f"its last {missing} bytes are missing"))
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)) as database:
            database.row_factory = sqlite3.Row
            database.text_factory = _text
            return _recording(database)
    except sqlite3.OperationalError as error:
        if "no such" in str(error):
            raise InvalidInput(f"{NOT_ROCPD} ({error})") from None
        raise InvalidInput(DAMAGED.format(error)) from None
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
        raise InvalidInput(DAMAGED.format(error)) from None


def _missing_bytes(path: Path) -> int:
    """By SQLite's header: the size of a page at byte 16, the number of pages at byte 28."""
    with path.open("rb") as file:
        header = file.read(32)
    page = int.from_bytes(header[16:18], "big")
    return max(0, (65536 if page == 1 else page) * int.from_bytes(header[28:32], "big") - path.stat().st_size)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", errors="replace")


def _recording(database: sqlite3.Connection) -> Recording:
    if "kernels" not in {row["name"] for row in database.execute("SELECT name FROM sqlite_master")}:
        raise InvalidInput(NOT_ROCPD)
    counted = _counters(database)
    rows = [dict(row) for row in database.execute("SELECT * FROM kernels")]
    if rows and (missing := {"name", "start", "end", "dispatch_id", "agent_abs_index"} - set(rows[0])):
        raise InvalidInput(f"{NOT_ROCPD} (its view lacks {', '.join(sorted(missing))})")
    found = [_dispatch(row, counted) for row in rows]
    if not found:
        raise InvalidInput(EMPTY)
    agents = {str(row["absolute_index"]): dict(row) for row in database.execute("SELECT * FROM rocpd_info_agent")}
    agent = agents.get(found[0].agent, {})
    return Recording(found, str(agent.get("product_name") or ""), str(agent.get("name") or ""), _command(database))


def _counters(database: sqlite3.Connection) -> dict[tuple[str, int], dict[str, float]]:
    """By agent and dispatch id; a database without the view has none."""
    held: dict[tuple[str, int], dict[str, float]] = {}
    views = {row["name"] for row in database.execute("SELECT name FROM sqlite_master")}
    if "counters_collection" not in views:
        return held
    for row in map(dict, database.execute("SELECT * FROM counters_collection")):
        name, value = row.get("counter_name"), row.get("counter_value", row.get("value"))
        if isinstance(name, str) and isinstance(value, (int, float)):
            held.setdefault((str(row["agent_abs_index"]), int(row["dispatch_id"])), {})[name] = float(value)
    return held


def _command(database: sqlite3.Connection) -> list[str]:
    views = {row["name"] for row in database.execute("SELECT name FROM sqlite_master")}
    row = database.execute("SELECT command FROM processes").fetchone() if "processes" in views else None
    return [str(row["command"])] if row and row["command"] else []


def _dispatch(row: Row, counted: Mapping[tuple[str, int], Mapping[str, float]]) -> Dispatch:
    agent, number = str(row["agent_abs_index"]), _whole(row, "dispatch_id")
    return Dispatch(
        name=str(row["name"]).removesuffix(".kd"),
        start_ns=_whole(row, "start"),
        end_ns=_whole(row, "end"),
        grid=_size(row, "grid"),
        block=_size(row, "workgroup"),
        lds_bytes=_whole(row, "lds_size"),
        scratch_bytes=_whole(row, "scratch_size"),
        registers=_whole(row, "vgpr_count"),
        accumulation_registers=_whole(row, "accum_vgpr_count"),
        scalar_registers=_whole(row, "sgpr_count"),
        agent=agent,
        number=number,
        counters=counted.get((agent, number or 0), {}),
    )


def _size(row: Row, what: str) -> tuple[int, int, int] | None:
    found = list(_sizes(row, what))
    return (found[0], found[1], found[2]) if len(found) == 3 else None


def _sizes(row: Row, what: str) -> Iterator[int]:
    for axis in "xyz":
        if (size := _whole(row, f"{what}_{axis}")) is not None or (
            size := _whole(row, f"{what}_size_{axis}")
        ) is not None:
            yield size


def _whole(row: Row, name: str) -> int | None:
    value = row.get(name)
    return value if isinstance(value, int) else None
