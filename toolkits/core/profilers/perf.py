"""`perf stat` output as counts. Pure functions over recorded text."""

from collections.abc import Mapping

from toolkits.core.profilers.verdict import Counts

EVENTS = (
    "instructions",
    "cycles",
    "branches",
    "branch-misses",
    "L1-dcache-load-misses",
    "LLC-load-misses",
    "task-clock",
)


def parse(text: str) -> Mapping[str, float]:
    """Events that were counted, from `perf stat -x,`; those the machine lacks are absent."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        fields = line.split(",")
        if len(fields) > 2 and _is_number(fields[0]):
            # Hybrid CPUs count an event once a kind of core: `cpu_core/instructions/`.
            name = fields[2].strip("/").rpartition("/")[2].partition(":")[0]
            found[name] = found.get(name, 0.0) + float(fields[0])
    return found


def missing(text: str) -> bool:
    """Whether this machine, container or user has no hardware counters."""
    return "instructions" not in parse(text)


def counts(found: Mapping[str, float]) -> Counts:
    """The counted events under the names that every profiler shares."""

    def event(name: str) -> int | None:
        return int(found[name]) if name in found else None

    return Counts(
        instructions=event("instructions"),
        cycles=event("cycles"),
        l1_misses=event("L1-dcache-load-misses"),
        ll_misses=event("LLC-load-misses"),
        branches=event("branches"),
        branch_misses=event("branch-misses"),
    )


def duration_us(found: Mapping[str, float]) -> float | None:
    """CPU time of the command: `task-clock` is in milliseconds."""
    return found["task-clock"] * 1e3 if "task-clock" in found else None


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()
