"""CUDA solutions: compiled for named architectures and reported on; where there is no device they run emulated.

Knows no way to launch anything.
"""

import re
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath

from toolkits.core import bindings, diagnostics
from toolkits.core.bindings import Binding
from toolkits.core.builds import content_key, find, keep_final, work_folder, write_sources
from toolkits.core.errors import InvalidInput, ToolkitUnavailable
from toolkits.core.gpu import bound, device_access, device_build, emulate, nvcc, toolchain
from toolkits.core.gpu.arch import DEFAULT_TARGETS, checked_target
from toolkits.core.gpu.entry_functions import entry_errors
from toolkits.core.gpu.inspection import Compile, Inspected, Job, inspect
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
        binding = bindings.binding(solution.binding) if solution.binding else None
        header = bound.header(task) if binding else _header(task, solution)
        flags = [*DEFAULT_FLAGS, *_flags(solution.flags), *(f"-D{name}={n}" for name, n in solution.chosen().items())]
        flags += bound.flags(binding) if binding else []
        targets = _targets(solution.targets)
        package = binding.package if binding else ""
        what = ("cuda", solution.id, header, flags, targets, _stamps(), purpose, package)
        gpu = await device_access.first("cuda")
        folder = builds.resolve() / content_key(*what, emulate.emulation_key(), device_build.stamp(gpu))
        if found := find(folder):
            return found
        constants = {name: axis.value for name, axis in task.axes.items() if axis.value is not None}
        with work_folder(builds) as work:
            sources = {HEADER: header, **solution.sources}
            job = Job(
                *(work, sources, _units(solution), targets, flags, bindings.LIMIT_S if binding else self._limit_s),
                known=constants | solution.chosen(),
                any_target=not solution.targets,
            )
            result = await self._built(job, task, solution, binding)
            if result.ok and purpose == "run" and not binding:
                result = await _runnable(job, task, solution, gpu, result)
            return keep_final(work, folder, result)

    async def _built(self, job: Job, task: Task, solution: Solution, binding: Binding | None) -> CompileResult:
        started = time.monotonic()
        if not binding:
            seen = await self._inspected(job, nvcc.compiled)
            seen.diagnostics[:0] = entry_errors(task, solution, "cuda")
            return self._result(seen, solution.id, await self._version(), started)
        seen = await self._inspected(job, partial(nvcc.compiled, visible=bound.visible(binding)))
        seen.diagnostics[:0] = bound.entry_errors(binding, solution)
        result = self._result(seen, solution.id, await self._version(), started)
        return result.model_copy(update={"not_timed": bound.not_run(binding, _named(result))}) if result.ok else result

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
            return keep_final(work, builds.resolve() / key, result)

    async def _inspected(self, job: Job, compile: Compile) -> Inspected:
        if self.missing() and compile is not nvcc.compiled_at_run_time:
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


def _header(task: Task, solution: Solution) -> str:
    return device_header(task, "cuda", solution.entry_function, solution.plan_function)


def _named(result: CompileResult) -> str:
    """The targets that it was built for."""
    return ", ".join(dict.fromkeys(kernel.target for kernel in result.kernels))


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


async def _runnable(
    job: Job, task: Task, solution: Solution, gpu: device_access.Gpu | None, result: CompileResult
) -> CompileResult:
    """The same with what the judge can load: for the device that is here, else for the emulation."""
    if not gpu or gpu.stand_in:
        emulated = await _emulated(job.work, task, solution, job.sources[HEADER], result)
        return device_build.runs_on(gpu, emulated)
    compiler = [toolchain.needed("nvcc"), *job.flags]
    built = await device_build.device_library(job.work, job.sources, job.units, compiler, gpu, job.limit_s)
    return device_build.with_library(gpu, result, built)


async def _emulated(work: Path, task: Task, solution: Solution, header: str, result: CompileResult) -> CompileResult:
    """The same with what the judge can run where no device is."""
    made = await emulate.emulated_library(work, task, solution, "cuda", header)
    why = emulate.NOT_TIMED if made.library else f"built for {_named(result)}, but not run: {made.why_not()}"
    log = "\n".join(filter(None, (result.log, made.log and f"== emulation\n{made.log}")))
    return result.model_copy(update={"artifact": made.library, "not_timed": why, "log": log})


TOOLKIT: Toolkit = CudaToolkit()
