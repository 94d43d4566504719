"""Nsight Compute's CSV pages (details, per-kernel summary, raw) as launches. Pure functions over recorded text."""

import re
from collections.abc import Iterator, Mapping, Sequence

from toolkits.core.errors import InvalidInput
from toolkits.core.profilers.ncu_metrics import Launch, Rule, plain
from toolkits.core.profilers.quantities import based, decimal_comma, number
from toolkits.core.profilers.tables import TORN, UNEVEN, Row, Table, table

NO_PERMISSION = (
    "Nsight Compute had no permission to read the GPU's counters (ERR_NVGPUCTRPERM): let an administrator set the"
    " driver option NVreg_RestrictProfilingToAdminUsers=0 and reboot, or run it as root or with CAP_SYS_ADMIN"
)
NO_KERNELS = (
    "no kernel was profiled: check --kernel-name, --launch-skip and --launch-count; the --nvtx-include of a push/pop"
    " range ends with a slash, as in `--nvtx-include name/`; and see that the program itself reached its launches"
)
FIXED = {
    "ID",
    "Process ID",
    "Process Name",
    "Host Name",
    "Kernel Name",
    "Kernel Time",
    "Context",
    "Stream",
    "Block Size",
    "Grid Size",
    "Device",
    "CC",
    "Section Name",
    "Invocations",
}
_METRIC = re.compile(r"[a-z][a-z0-9]*__\w+(?:\.[\w.]+)?")
_SHAPE = re.compile(r"\(?\s*(\d+)\s*[,;x]\s*(\d+)\s*[,;x]\s*(\d+)\s*\)?")
_DROPPED = re.compile(r"==(?:ERROR|WARNING)== (?:Failed to profile|Profiling failed|Skipping|Launch failed)[^\n]*")


def find(text: str) -> Table | None:
    """The table of a details or raw page, wherever it starts."""
    return table(text, "ID", "Kernel Name")


def launches(held: Table) -> list[Launch]:
    """Every launch of either page; a file without any is refused with the reason and the remedy."""
    refuse(held.log)
    if held.torn:
        raise InvalidInput(TORN)
    if held.long:
        raise InvalidInput(UNEVEN.format(held.long, "more"))
    found = list(_details(held) if held.has("Metric Name") else _raw(held))
    if not found:
        raise InvalidInput(NO_KERNELS)
    return found


def refuse(log: str) -> None:
    """What Nsight Compute said that leaves nothing to read."""
    if "ERR_NVGPUCTRPERM" in log:
        raise InvalidInput(NO_PERMISSION)
    if "No kernels were profiled" in log:
        raise InvalidInput(NO_KERNELS)


def notes(held: Table) -> list[str]:
    """What is missing in the table, by what the tool said and by its numbering."""
    said = list(dict.fromkeys(match[0] for match in _DROPPED.finditer(held.log)))
    ids = {int(row["ID"]) for row in held.rows if row.get("ID", "").isdigit()}
    gaps = max(ids, default=-1) + 1 - len(ids)
    missing = [f"{gaps} launches between the first and the last are missing: dropped, or filtered out"] if gaps else []
    return [*(f"Nsight Compute said: {line[:200]}" for line in said[:3]), *missing]


def _details(held: Table) -> Iterator[Launch]:
    valued = next((name for name in ("Metric Value", "Average") if name in held.header), "")
    if not valued or "Metric Unit" not in held.header:
        raise InvalidInput(
            "a details page without the columns `Metric Unit` and `Metric Value`: of no version known here"
        )
    # A row is of a metric or of a rule: both at once is a number whose separators stand unquoted.
    if slid := sum(bool(row.get("Metric Name") and row.get("Rule Name")) for row in held.rows):
        raise InvalidInput(UNEVEN.format(slid, "more"))
    comma = _comma(row.get(valued, "") for row in held.rows)
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in held.rows:
        key = (
            row["ID"],
            row["Kernel Name"],
            row.get("Block Size", ""),
            row.get("Grid Size", ""),
            row.get("Device", ""),
        )
        groups.setdefault(key, []).append(row)
    for rows in groups.values():
        yield _launch(rows[0], _labels(rows, valued, comma), tuple(_rules(rows, comma)))


def _labels(rows: Sequence[Row], valued: str, comma: bool) -> dict[str, tuple[float, str]]:
    """Labels that name two figures, as `Memory Throughput` does, are told apart by their unit."""
    found: dict[str, tuple[float, str]] = {}
    for row in rows:
        value = number(told := row.get(valued) or "", comma)
        if value is None and re.fullmatch(r"[\d.,]{3,}", told):
            raise InvalidInput(f"{row.get('Metric Name')} is {told[:40]!r}, which is no number: the table is damaged")
        if value is not None and (label := row.get("Metric Name")):
            quantity = based(value, row.get("Metric Unit") or "")
            found.setdefault(label, quantity)
            found[f"{label}|{quantity[1]}"] = quantity
    return found


def _rules(rows: Sequence[Row], comma: bool) -> Iterator[Rule]:
    for row in rows:
        if name := row.get("Rule Name"):
            text = plain(row.get("Rule Description") or "")
            # Old versions call advice a warning; a metric that could not be found is none.
            advice = row.get("Rule Type") in {"OPT", "WRN"} and "could not be found" not in text
            gain = number(row.get("Estimated Speedup") or "", comma)
            yield Rule(name, text, advice, gain, local=row.get("Estimated Speedup Type") == "local")


def _raw(held: Table) -> Iterator[Launch]:
    metrics = [name for name in held.header if _METRIC.fullmatch(name)]
    if not metrics:
        raise InvalidInput("neither `Metric Name` nor any metric is among its columns: of no version known here")
    units, rows = _units(held.rows)
    comma = _comma(row.get(name, "") for row in rows for name in metrics)
    for row in rows:
        found = {
            name: based(value, units.get(name, ""))
            for name in metrics
            if (value := number(row.get(name) or "", comma)) is not None
        }
        yield _launch(row, found, ())


def _units(rows: Sequence[Row]) -> tuple[Row, Sequence[Row]]:
    """The row of units has no ID. Without it nothing has a unit, and no time or share can be told."""
    if rows and not rows[0].get("ID", "").strip():
        return rows[0], rows[1:]
    if rows:
        raise InvalidInput("the raw page has no row of units below its header: record it with `ncu --csv --page raw`")
    return {}, rows


def _launch(row: Row, metrics: Mapping[str, tuple[float, str]], rules: tuple[Rule, ...]) -> Launch:
    invoked = row.get("Invocations", "").strip()
    capability = row.get("CC", "").strip().replace(",", ".")
    return Launch(
        name=row["Kernel Name"],
        metrics=metrics,
        grid=_shape(row.get("Grid Size", "")) or _dimensions(metrics, "grid"),
        block=_shape(row.get("Block Size", "")) or _dimensions(metrics, "block"),
        rules=rules,
        architecture=f"sm_{capability.replace('.', '')}" if capability else "",
        device=row.get("device__attribute_display_name", ""),
        launches=int(invoked) if invoked.isdigit() else 1,
    )


def _shape(text: str) -> tuple[int, int, int] | None:
    match = _SHAPE.search(text)
    return (int(match[1]), int(match[2]), int(match[3])) if match else None


def _dimensions(metrics: Mapping[str, tuple[float, str]], what: str) -> tuple[int, int, int] | None:
    found = [metrics.get(f"launch__{what}_dim_{axis}") for axis in "xyz"]
    x, y, z = (int(value[0]) if value else 0 for value in found)
    return (x, y, z) if x and y and z else None


def _comma(values: Iterator[str]) -> bool:
    comma = decimal_comma(values)
    if comma is None:
        raise InvalidInput("its numbers mix decimal points and decimal commas: record it again with `LC_ALL=C ncu ...`")
    return comma
