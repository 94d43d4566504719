"""What the kernel's files say of cores and processes, as small values. A file that is missing is no error.

Plain system calls: pathlib would take longer than the kernel.
"""

import os
from contextlib import suppress
from dataclasses import dataclass

UNKNOWN = "not readable"
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
CPU = "/sys/devices/system/cpu"
_MOST = 1 << 16


def text_of(file: str) -> str:
    """The beginning of a file, stripped; empty when it cannot be read."""
    try:
        fd = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(fd, _MOST).decode("utf-8", "replace").strip()
    except OSError:
        return ""
    finally:
        os.close(fd)


@dataclass(frozen=True)
class Core:
    """Ticks of one core since boot."""

    busy: int
    """Running anything, for whatever guest or interrupt."""
    stolen: int
    """Ready to run while the hypervisor ran another machine."""

    def since(self, before: "Core") -> "Core":
        return Core(self.busy - before.busy, self.stolen - before.stolen)


@dataclass(frozen=True)
class Switches:
    """A process's context switches and page faults so far."""

    voluntary: int
    forced: int
    minor: int
    major: int

    def since(self, before: "Switches") -> "Switches":
        return Switches(
            self.voluntary - before.voluntary,
            self.forced - before.forced,
            self.minor - before.minor,
            self.major - before.major,
        )


def siblings(text: str, core: int) -> list[int]:
    """The other hardware threads of the core, from a list such as `0-1` or `3,67`."""
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return sorted(found - {core})


def cores(text: str, wanted: set[int]) -> dict[int, Core]:
    """Of /proc/stat the lines of the wanted cores."""
    found: dict[int, Core] = {}
    for line in text.splitlines():
        if not line.startswith("cpu"):
            break  # what follows is long, and about other things
        name, *ticks = line.split()
        if name[3:].isdigit() and int(name[3:]) in wanted and len(ticks) >= 8:
            user, nice, system, _idle, _waiting, hard, soft, stolen = map(int, ticks[:8])
            found[int(name[3:])] = Core(user + nice + system + hard + soft, stolen)
    return found


def switches(pid: int) -> Switches | None:
    """Of a live process; None once it is gone."""
    parts = (line.partition(":") for line in text_of(f"/proc/{pid}/status").splitlines())
    fields = {name: value for name, _, value in parts}
    stat = _stat(pid)
    try:
        return Switches(
            voluntary=int(fields["voluntary_ctxt_switches"]),
            forced=int(fields["nonvoluntary_ctxt_switches"]),
            minor=int(stat[7]),
            major=int(stat[9]),
        )
    except (KeyError, IndexError, ValueError):
        return None


def used_s(pid: int) -> float | None:
    """CPU seconds of a process and its threads, so far; None once it is gone."""
    stat = _stat(pid)
    return (int(stat[11]) + int(stat[12])) * TICK_S if len(stat) > 12 else None


def _stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat after the name, which may hold anything: the state comes first."""
    return text_of(f"/proc/{pid}/stat").rpartition(") ")[2].split()


def bracketed(text: str) -> str:
    """The chosen one of `always [madvise] never`."""
    return text.partition("[")[2].partition("]")[0] or UNKNOWN


def governor(core: int) -> str:
    return text_of(f"{CPU}/cpu{core}/cpufreq/scaling_governor") or UNKNOWN


def boost() -> str:
    if turned_off := text_of(f"{CPU}/intel_pstate/no_turbo"):
        return "off" if turned_off == "1" else "on"
    return {"0": "off", "1": "on"}.get(text_of(f"{CPU}/cpufreq/boost"), UNKNOWN)


def throttled(core: int) -> int | None:
    """How many times the core or its package was slowed down for heat or power since boot."""
    counts = [text_of(f"{CPU}/cpu{core}/thermal_throttle/{what}_throttle_count") for what in ("core", "package")]
    return sum(map(int, filter(None, counts))) if any(counts) else None


def mhz(core: int) -> str:
    """From the driver; else from the list of processors, which is read no further than the core."""
    if (khz := text_of(f"{CPU}/cpu{core}/cpufreq/scaling_cur_freq")).isdigit():  # some drivers say <unknown>
        return str(int(khz) // 1000)
    here = False
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as lines:  # noqa: PTH123
        for line in lines:
            name, _, value = line.partition(":")
            if name.startswith("processor"):
                here = value.strip() == str(core)
            elif here and name.startswith("cpu MHz"):
                return f"{float(value):.0f}"
    return UNKNOWN
