"""What this machine has to build, time and profile with. Knows no workspace and no terminal; starts no kernel."""

import os
import shutil
from pathlib import Path

from toolkits.core import process, profiling, sanitize
from toolkits.core.compiler import Compiler
from toolkits.core.judge import procfs
from toolkits.core.protections import Check
from toolkits.core.toolkit import available, get_toolkit

NEEDED_TOOLKITS = ("cpp", "python")
"""What the shipped tasks are written in."""
WORKS = {
    "cuda": "for named GPUs; without one emulated, never timed",
    "hip": "for named GPUs; without one emulated, never timed",
    "opencl": "on the CPU through PoCL, timed",
    "triton": "for named GPUs; without one interpreted, never timed",
}
"""What that means, where it is not what everybody expects."""
FROM_COUNTERS = "callgrind counts instead; for counters: a machine that is not virtual, kernel.perf_event_paranoid=1"


async def building() -> list[Check]:
    """Each toolkit, and the compiler."""
    toolkits = [_toolkit(name, get_toolkit(name).missing()) for name in available()]
    compiler = Compiler()
    if compiler.missing():
        return [
            *toolkits,
            Check(area="build", name="compiler", state="missing", seen="none", remedy=compiler.missing()),
        ]
    seen = f"{compiler.path()}: {await compiler.version()}"
    return [*toolkits, Check(area="build", name="compiler", state="ok", seen=seen)]


def _toolkit(name: str, missing: str) -> Check:
    lost = "missing" if name in NEEDED_TOOLKITS else "note"
    what, _, command = missing.partition(": ")
    return Check(
        area="build",
        name=f"toolkit {name}",
        state=lost if missing else "ok",
        seen=f"lacks {what}" if missing else WORKS.get(name, "works"),
        remedy=command or what,
    )


async def measuring() -> list[Check]:
    """The profilers, as they answer, and the core that is timed on."""
    return [await _valgrind(), *await _perf(), *debugging(), *sanitizing(), *_core(max(os.sched_getaffinity(0)))]


DEBUGGERS = {
    "gdb": "explains C++ candidates that die: signal, line, arguments, calls",
    "cuda-gdb": "explains CUDA kernels that die; comes with the CUDA toolkit",
    "rocgdb": "explains HIP kernels that die; comes with ROCm",
    "lldb": "is there for people; the lab itself asks gdb",
    "oclgrind": "finds races and wrong accesses in OpenCL kernels",
}
"""What each is for; those that apt has are advised."""


SANITIZED = ("cpp", "cuda", "hip", "opencl")


def debugging() -> list[Check]:
    """What can look into a candidate that dies or goes astray."""
    return [
        _debugger(name, use) for name, use in DEBUGGERS.items() if shutil.which(name) or name in ("gdb", "oclgrind")
    ]


def sanitizing() -> list[Check]:
    """What `benchmark` with mode sanitize can watch."""
    lacking = {name: sanitize.missing(name) for name in SANITIZED}
    watched = ", ".join(name for name in SANITIZED if not lacking[name])
    seen = f"{watched}: benchmark with mode sanitize"
    found = [Check(area="debug", name="sanitizers", state="ok", seen=seen)] if watched else []
    return found + [
        Check(area="debug", name="sanitizers", state="note", seen=f"none for {name}", remedy=remedy)
        for name, remedy in lacking.items()
        if remedy
    ]


def _debugger(name: str, use: str) -> Check:
    path = shutil.which(name)
    if path:
        return Check(area="debug", name=name, state="ok", seen=f"{path}: {use}")
    return Check(area="debug", name=name, state="note", seen=f"none; it {use}", remedy=f"apt install {name}")


async def _valgrind() -> Check:
    missing = profiling.profilers()["callgrind"]
    if missing:
        seen = "none: no C++ solution can be profiled"
        return Check(area="profile", name="valgrind", state="note", seen=seen, remedy=missing)
    path = str(shutil.which("valgrind"))
    done = await process.run([path, "--version"], cwd=Path("/"), timeout_s=20)
    works = done.returncode == 0
    return Check(
        area="profile",
        name="valgrind",
        state="ok" if works else "note",
        seen=f"{path}: {done.output.strip()[:200]}",
        remedy="" if works else "reinstall it: apt install --reinstall valgrind",
    )


async def _perf() -> list[Check]:
    path = shutil.which("perf")
    if not path:
        missing = profiling.profilers()["perf"]
        return [Check(area="profile", name="perf", state="note", seen="none", remedy=missing)]
    counters = await profiling.has_counters()
    return [
        Check(area="profile", name="perf", state="ok", seen=path),
        Check(
            area="profile",
            name="hardware counters",
            state="ok" if counters else "note",
            seen="perf counts instructions" if counters else "perf cannot count instructions",
            remedy="" if counters else FROM_COUNTERS,
        ),
    ]


def _core(core: int) -> list[Check]:
    governor, frequency = procfs.governor(core), procfs.mhz(core)
    siblings = procfs.siblings(procfs.text_of(f"{procfs.CPU}/cpu{core}/topology/thread_siblings_list"), core)
    load = procfs.text_of("/proc/loadavg").split()[:1]
    busy = bool(load) and float(load[0]) > len(os.sched_getaffinity(0)) / 2
    steady = governor in ("performance", procfs.UNKNOWN)
    return [
        Check(area="timing", name="core", state="ok", seen=f"{core}, of {sorted(os.sched_getaffinity(0))}"),
        Check(
            area="timing",
            name="clock",
            state="ok" if steady else "note",
            seen=f"governor {governor}, {frequency} MHz now, boost {procfs.boost()}",
            remedy="" if steady else "for less noise: cpupower frequency-set -g performance",
        ),
        Check(
            area="timing",
            name="SMT sibling",
            state="note" if siblings else "ok",
            seen=f"core {', '.join(map(str, siblings))}: what runs there slows this one" if siblings else "none",
            remedy="keep it idle while timing" if siblings else "",
        ),
        Check(
            area="timing",
            name="load",
            state="note" if busy else "ok",
            seen=f"{load[0] if load else procfs.UNKNOWN} of the last minute",
            remedy="end what runs beside it: verdicts become inconclusive" if busy else "",
        ),
    ]
