"""A CUDA or HIP solution as a library for the CPU: our SIMT emulation runs its kernels, the judge loads it as C++.

What it cannot run is told before any compiler starts. Knows no cache, no judge and no way to load what it builds.
"""

import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath
from shutil import rmtree

import anyio

from toolkits.core import diagnostics, process
from toolkits.core.builds import content_key, write_sources
from toolkits.core.compiler import Compiler, cpu, enclosed, environment, name_inside
from toolkits.core.gpu.simt_entry import entries, labelled, wrapper
from toolkits.core.gpu.simt_limits import unsupported
from toolkits.core.gpu.simt_source import rewritten
from toolkits.core.schema import Diagnostic, Solution, Task
from toolkits.core.signature import Dialect

NOT_TIMED = "emulated on the CPU: checked, never timed"
EMULATION = Path(__file__).parent / "emulation"
HEADER, LIBRARY = "task.h", "emulated.so"
COMPILE_LIMIT_S = 60.0
FLAGS = ("-std=c++20", "-march=native", "-fno-math-errno", "-fvisibility=hidden", "-fPIC")
RUN_FLAGS = ("-O2", "-DSIMT_CHECK=0")
# The compiler's own calls before every access of memory, answered by check.cpp.
CHECK_FLAGS = ("-O1", "-g", "-fno-omit-frame-pointer", "-fno-threadsafe-statics", "-fsanitize=thread", "-DSIMT_CHECK=1")
QUIET_FLAGS = ("-fdiagnostics-color=never", "-w")
DIALECT_FLAGS: Mapping[Dialect, tuple[str, ...]] = {
    "cuda": ("-DSIMT_HIP=0", "-DSIMT_WARP=32", "-D__CUDACC__=1"),
    "hip": ("-DSIMT_HIP=1", "-DSIMT_WARP=64", "-D__HIPCC__=1", "-D__HIP_PLATFORM_AMD__=1"),
}
STUBS: Mapping[Dialect, Sequence[str]] = {
    "cuda": (
        *("cuda.h", "cuda_runtime.h", "cuda_runtime_api.h", "cuda_fp16.h", "cuda_bf16.h", "cooperative_groups.h"),
        *("device_launch_parameters.h", "math_constants.h", "vector_types.h", "cooperative_groups/reduce.h"),
    ),
    "hip": (
        *("hip/hip_runtime.h", "hip/hip_runtime_api.h", "hip/hip_fp16.h", "hip/hip_bf16.h", "hip/hip_bfloat16.h"),
        *("hip/hip_cooperative_groups.h", "hip/hip_vector_types.h"),
    ),
}
_UNITS = {".cu", ".hip", ".cpp", ".cc", ".cxx"}
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_OWN_LINE = re.compile(r"^(\.\./)?emulation/\S+:\d+:\d+: note: .*$")


@dataclass(frozen=True)
class Emulated:
    """A library, or else why there is none: a reason that is nobody's fault, or the compiler's errors."""

    library: Path | None = None
    reason: str = ""
    """Why the emulation cannot run it, with file and line: the solution is SKIPPED."""
    diagnostics: list[Diagnostic] = field(default_factory=list[Diagnostic])
    log: str = ""

    def why_not(self) -> str:
        """In a line: for a source that the real compiler takes, what the emulation's says is a limit of the latter."""
        if self.reason or self.library:
            return self.reason
        first = next(one for one in self.diagnostics if one.severity == "error")
        place = ":".join(str(part) for part in (first.file, first.line) if part)
        place = f"{place}: " if place else ""
        return f"{place}the emulation does not take this source: {first.message}"


async def emulated_library(
    work: Path,
    task: Task,
    solution: Solution,
    dialect: Dialect,
    header: str,
    *,
    checking: bool = False,
    limit_s: float = COMPILE_LIMIT_S,
) -> Emulated:
    """Build in `work`, which keeps the library alone; `header` is the solution's `task.h`."""
    if reason := _missing() or unsupported(solution.sources):
        return Emulated(reason=reason)
    folder = work / "emulated"
    _write(folder, task, solution, dialect, header, checking=checking)
    done = await _compiled(folder, solution, dialect, limit_s, checking=checking)
    log = _readable(done.output, folder)
    if done.returncode == 0:
        library = (folder / LIBRARY).rename(work / LIBRARY)
        rmtree(folder)
        return Emulated(library=library, log=log)
    rmtree(folder)
    found = diagnostics.parse(log)
    if done.returncode is None:
        found = [Diagnostic(severity="error", message=f"compile_timeout: stopped after {limit_s:g} s"), *found]
    return Emulated(diagnostics=diagnostics.with_error(found, log), log=log)


@cache
def emulation_key() -> str:
    """Changes with everything of ours and of this machine that decides what a build gives."""
    own = {path.name: path.read_text(encoding="utf-8") for path in sorted(EMULATION.iterdir()) if path.is_file()}
    code = [Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8") for name in _CODE]
    missing = Compiler().missing()
    compiler = missing or [Compiler().path(), Path(Compiler().path()).stat().st_mtime_ns]
    return content_key(own, code, cpu(), compiler)


_CODE = ("emulate", "simt_source", "simt_tokens", "simt_limits", "simt_entry")


def _missing() -> str:
    if platform.machine() != "x86_64":
        return f"the emulation switches threads in x86-64 assembly, and this machine is {platform.machine()}"
    return f"the emulation needs {Compiler().missing()}" if Compiler().missing() else ""


def _write(folder: Path, task: Task, solution: Solution, dialect: Dialect, header: str, *, checking: bool) -> None:
    own = {path.name: path.read_text(encoding="utf-8") for path in EMULATION.iterdir() if path.is_file()}
    stubs = {f"include/{name}": '#include "simt.h"\n' for name in STUBS[dialect]}
    sources = {name: rewritten(text, checking=checking) for name, text in solution.sources.items()}
    write_sources(folder / "src", {HEADER: labelled(header), **sources})
    write_sources(folder / "emulation", {**own, **stubs, "entry.cpp": wrapper(task, entries(header))})
    (folder / "tmp").mkdir()


async def _compiled(
    folder: Path, solution: Solution, dialect: Dialect, limit_s: float, *, checking: bool
) -> process.Completed:
    """The solution and the emulation at the same time, then both as one library; the first that fails decides."""
    done: dict[str, process.Completed] = {}

    async def run(what: str, step: list[str]) -> None:
        boxed = enclosed([Compiler().path(), *step], folder, "src")
        env = environment(name_inside(folder) / "tmp")
        done[what] = await process.run(boxed, cwd=folder / "src", timeout_s=limit_s, env=env)

    async with anyio.create_task_group() as group:
        group.start_soon(run, "units", _units_step(solution, dialect, folder, checking=checking))
        group.start_soon(run, "entry", _entry_step(dialect, folder, checking=checking))
    for what in ("units", "entry"):
        if done[what].returncode != 0:
            return done[what]
    await run(
        "link", [*QUIET_FLAGS, "-shared", "-Wl,--no-undefined", "../units.o", "../entry.o", "-o", f"../{LIBRARY}"]
    )
    return done["link"]


def _units_step(solution: Solution, dialect: Dialect, folder: Path, *, checking: bool) -> list[str]:
    """The compiler's arguments for the solution's files: one object of all."""
    own = [flag for flag in solution.flags if re.match(r"-[DU]\w+(=.*)?$", flag)]
    chosen = [f"-D{name}={value}" for name, value in solution.chosen().items()]
    units = [f"./{name}" for name in _units(solution.sources)]
    mode = CHECK_FLAGS if checking else RUN_FLAGS
    given = [*own, *chosen, "-include", "simt.h", "-x", "c++", *units]
    return [*_common(dialect, folder), *mode, *given, "-r", "-nostdlib", "-o", "../units.o"]


def _entry_step(dialect: Dialect, folder: Path, *, checking: bool) -> list[str]:
    """The same for the emulation itself, which nothing watches."""
    mode = [*RUN_FLAGS[:1], f"-DSIMT_CHECK={int(checking)}"]
    return [*_common(dialect, folder), *mode, "-c", "../emulation/entry.cpp", "-o", "../entry.o"]


def _common(dialect: Dialect, folder: Path) -> list[str]:
    paths = ["-I.", "-I../emulation", "-I../emulation/include", f"-ffile-prefix-map={name_inside(folder)}/src=."]
    return [*FLAGS, *DIALECT_FLAGS[dialect], *paths, *QUIET_FLAGS]


def _units(sources: Mapping[str, str]) -> list[str]:
    """The files to compile: those that no other one includes."""
    included = {PurePosixPath(name).name for text in sources.values() for name in _INCLUDE.findall(text)}
    return sorted(
        name for name in sources if PurePosixPath(name).suffix in _UNITS and PurePosixPath(name).name not in included
    )


def _readable(output: str, folder: Path) -> str:
    inside = name_inside(folder)
    text = output.replace(f"{inside}/tmp/", "").replace(f"{inside}/src/", "").replace(str(inside), "")
    return "\n".join(_without_own(text.splitlines()))


def _without_own(lines: Sequence[str]) -> Iterator[str]:
    """Without the notes on our headers, which tell a reader of the solution nothing."""
    return (line for line in lines if not _OWN_LINE.match(line))
