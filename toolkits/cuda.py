"""CUDA solutions: compiled for named architectures and reported on; where there is no device they run emulated.

Knows no way to launch anything.
"""

import re
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from toolkits.core import diagnostics
from toolkits.core.builds import content_key, find, keep, work_folder, write_sources
from toolkits.core.errors import InvalidInput, ToolkitUnavailable
from toolkits.core.gpu import emulate, nvcc, toolchain
from toolkits.core.gpu.arch import DEFAULT_TARGETS, checked_target
from toolkits.core.gpu.entry_functions import entry_errors
from toolkits.core.gpu.inspection import TIMEOUT, Compile, Inspected, Job, inspect
from toolkits.core.gpu.launches import plain
from toolkits.core.schema import CompileResult, Solution, Task
from toolkits.core.signature import device_header, plan_of
from toolkits.core.toolkit import Purpose, Toolkit

HEADER = "task.h"
DEFAULT_FLAGS = ("-O3", "-std=c++20")
RUN_TIME_FLAGS = ("-std=c++20",)
COMPILE_LIMIT_S = 120.0
MOST_TARGETS = 8

_ALLOWED = re.compile(
    r"-O[0-3]|-[DU]\w+(=.*)?|-std=c\+\+(14|17|20)|--?(use_fast_math|expt-relaxed-constexpr|expt-extended-lambda"
    r"|extended-lambda|extra-device-vectorization|restrict)|--?maxrregcount=\d+"
    r"|--?(fmad|ftz|prec-div|prec-sqrt)=(true|false)"
)
_HOST = re.compile(r"<<<|\bmain\s*\(|#\s*include\s*<(?!cuda_|cuda/|cub/|cooperative_groups|mma\.h|crt/|nv/)\w+")
_NOT_OF_THE_SOURCE = re.compile(r"Killed|No space left on device|cannot allocate memory|out of memory", re.IGNORECASE)


class CudaToolkit:
    """Cubins and their reports, cached by content, flags, targets and toolchain."""

    name = "cuda"

    def __init__(self, limit_s: float = COMPILE_LIMIT_S) -> None:
        self._limit_s = limit_s
        self._versions: dict[str, str] = {}

    def missing(self) -> str:
        return "" if toolchain.program("nvcc") else f"nvcc: {toolchain.REMEDIES['nvcc']}"

    async def compile(self, task: Task, solution: Solution, builds: Path, purpose: Purpose = "run") -> CompileResult:
        """Report on every target, and where it is to run, build what the CPU can execute."""
        plan_of(task, solution)
        header = device_header(task, "cuda", solution.entry_function, solution.plan_function)
        flags = [*DEFAULT_FLAGS, *_flags(solution.flags), *(f"-D{name}={n}" for name, n in solution.chosen().items())]
        targets = _targets(solution.targets)
        what = ("cuda", solution.id, header, flags, targets, _stamps(), purpose)
        folder = builds.resolve() / content_key(*what, emulate.emulation_key())
        if found := find(folder):
            return found
        units = _units(solution)
        constants = {name: axis.value for name, axis in task.axes.items() if axis.value is not None}
        with work_folder(builds) as work:
            started = time.monotonic()
            sources = {HEADER: header, **solution.sources}
            job = Job(
                *(work, sources, units, targets, flags, self._limit_s),
                known=constants | solution.chosen(),
                any_target=not solution.targets,
            )
            seen = await self._inspected(job, nvcc.compiled)
            seen.diagnostics[:0] = entry_errors(task, solution, "cuda")
            result = self._result(seen, solution.id, await self._version(), started)
            if result.ok and purpose == "run":
                result = await _emulated(work, task, solution, header, result)
            return keep(work, folder, result) if _is_final(result) else result

    async def look(self, sources: Mapping[str, str], targets: Sequence[str], builds: Path) -> CompileResult:
        """Report on files that are no solution of a task: by NVRTC where they hold kernels alone."""
        chosen, units = _targets(targets), [name for name, text in sources.items() if _has_kernels(name, text)]
        if not units:
            raise InvalidInput("there is no .cu file with a `__global__` function")
        alone = toolchain.nvrtc() is not None and not any(_HOST.search(plain(text)) for text in sources.values())
        key = content_key("cuda files", dict(sources), chosen, _stamps(), alone)
        if found := find(builds.resolve() / key):
            return found
        with work_folder(builds) as work:
            started = time.monotonic()
            job = Job(*(work, sources, units, chosen, RUN_TIME_FLAGS, self._limit_s), any_target=not targets)
            version = f"NVRTC ({Path(str(toolchain.nvrtc())).resolve().name})"
            seen = await self._inspected(replace(job, read_code=False), nvcc.compiled_at_run_time) if alone else None
            # NVRTC lacks the host's headers, and nvcc knows the line of what the assembler refuses.
            if not seen or (not seen.ok and not self.missing()):
                job, version = replace(job, flags=DEFAULT_FLAGS), await self._version()
                seen = await self._inspected(job, nvcc.compiled)
            result = self._result(seen, key, version, started)
            return keep(work, builds.resolve() / key, result) if _is_final(result) else result

    async def _inspected(self, job: Job, compile: Compile) -> Inspected:
        if self.missing() and compile is nvcc.compiled:
            raise ToolkitUnavailable(f"this machine lacks {self.missing()}")
        write_sources(job.work / nvcc.SOURCES, job.sources)
        scratch = job.work / nvcc.SCRATCH
        scratch.mkdir()
        seen = await inspect(job, compile)
        shutil.rmtree(scratch)
        return seen

    def _result(self, seen: Inspected, solution: str, version: str, started: float) -> CompileResult:
        return CompileResult(
            ok=seen.ok,
            solution=solution,
            toolkit=self.name,
            command=seen.command,
            diagnostics=seen.diagnostics[: diagnostics.MOST],
            log=seen.log[-2 * diagnostics.MOST * 1_600 :],
            build_ms=(time.monotonic() - started) * 1e3,
            toolchain=version,
            kernels=seen.kernels,
        )

    async def _version(self) -> str:
        """Asked once for each nvcc."""
        path = toolchain.needed("nvcc")
        key = toolchain.stamp(path)
        if key not in self._versions:
            self._versions[key] = await nvcc.version(path)
        return self._versions[key]


def _targets(named: Sequence[str]) -> list[str]:
    targets = list(dict.fromkeys(checked_target(target) for target in named)) or list(DEFAULT_TARGETS)
    if len(targets) > MOST_TARGETS:
        raise InvalidInput(f"{len(targets)} targets at once: name at most {MOST_TARGETS}")
    return targets


def _stamps() -> list[str]:
    return [toolchain.stamp(toolchain.program("nvcc")), toolchain.stamp(toolchain.program("nvdisasm"))]


def _flags(flags: Sequence[str]) -> list[str]:
    for flag in flags:
        if not _ALLOWED.fullmatch(flag):
            raise InvalidInput(
                f"compiler flag {flag!r} is refused: -O*, -D*, -U*, -std=*, -maxrregcount=N, -use_fast_math, -fmad,"
                " -ftz, -prec-div, -prec-sqrt, -expt-relaxed-constexpr and -extended-lambda count; `targets` are a key"
            )
    return list(flags)


def _units(solution: Solution) -> list[str]:
    """The files to compile; the rest are headers."""
    if any(PurePosixPath(name).parts[0] == HEADER for name in solution.sources):
        raise InvalidInput(f"{HEADER} is generated from the task: leave it out of the solution and include it")
    if not solution.entry_file.endswith(".cu"):
        raise InvalidInput(f"the entry file {solution.entry_file!r} of a cuda solution must be a .cu file")
    units = [name for name, text in sorted(solution.sources.items()) if _has_kernels(name, text)]
    return units if solution.entry_file in units else [solution.entry_file, *units]


def _has_kernels(name: str, text: str) -> bool:
    return name.endswith(".cu") and "__global__" in plain(text)


async def _emulated(work: Path, task: Task, solution: Solution, header: str, result: CompileResult) -> CompileResult:
    """The same with what the judge can run: no device is used, not even where there is one."""
    made = await emulate.emulated_library(work, task, solution, "cuda", header)
    targets = ", ".join(dict.fromkeys(kernel.target for kernel in result.kernels))
    why = emulate.NOT_TIMED if made.library else f"built for {targets}, but not run: {made.why_not()}"
    log = "\n".join(filter(None, (result.log, made.log and f"== emulation\n{made.log}")))
    return result.model_copy(update={"artifact": made.library, "not_timed": why, "log": log})


def _is_final(result: CompileResult) -> bool:
    """A time limit or a full memory says something of this machine, now: the next call tries again."""
    timed_out = any(diagnostic.message.startswith(TIMEOUT) for diagnostic in result.diagnostics)
    return result.ok or not (timed_out or _NOT_OF_THE_SOURCE.search(result.log))


TOOLKIT: Toolkit = CudaToolkit()
