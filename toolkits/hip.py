"""HIP solutions: each kernel compiled for AMD GPUs and reported; what runs here is the same source emulated on the CPU.

Needs no GPU and no ROCm. Predicts the launches that a GPU would refuse, and knows no way to run anything.
"""

import re
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

import anyio

from toolkits.core import diagnostics
from toolkits.core.builds import content_key, find, keep_final, work_folder, write_sources
from toolkits.core.errors import InvalidInput, ToolkitUnavailable
from toolkits.core.gpu import amd, device_access, device_build
from toolkits.core.gpu.emulate import NOT_TIMED, emulated_library, emulation_key
from toolkits.core.gpu.entry_functions import entry_errors
from toolkits.core.gpu.hip_compilers import HEADERS, REMEDY, HipCompiler, compiler_for, installed
from toolkits.core.gpu.hip_target import HipSources
from toolkits.core.gpu.targets import merged
from toolkits.core.schema import CompileResult, Diagnostic, KernelReport, Solution, Task
from toolkits.core.signature import device_header, plan_of
from toolkits.core.toolkit import Purpose, Toolkit

DEFAULT_FLAGS = ("-O3", "-std=c++20", "-gline-tables-only", "-fno-color-diagnostics")
COMPILE_LIMIT_S = 120.0
HEADER = "task.h"
_UNITS = {".hip", ".cpp", ".cc", ".cxx"}
_ALLOWED = re.compile(
    r"-(O[0-3s]|D\w+(=\S*)?|U\w+|std=(c|gnu)\+\+\d\w|ffast-math|fno-math-errno|ffp-contract=\w+|f(no-)?unroll-loops"
    r"|munsafe-fp-atomics|W(all|extra|no-[\w-]+))"
)


class HipToolkit:
    """Builds one assembly an architecture and the emulated library, cached by content, flags and compilers."""

    name = "hip"

    def __init__(self, limit_s: float = COMPILE_LIMIT_S) -> None:
        self._limit_s = limit_s

    def missing(self) -> str:
        return "" if installed() else f"a compiler for AMD GPUs: {REMEDY}"

    async def compile(self, task: Task, solution: Solution, builds: Path, purpose: Purpose = "run") -> CompileResult:
        """Build under `builds`, or find the same content already built there; both purposes are the same build."""
        plan_of(task, solution)
        compilers = await _chosen(solution.targets)
        header = device_header(task, "hip", solution.entry_function, solution.plan_function)
        flags = _flags(solution)
        versions = {target: compiler.version for target, compiler in compilers.items()}
        own = [path.read_text(encoding="utf-8") for path in sorted(HEADERS.iterdir())]
        gpu = await device_access.first("hip")
        what = ("hip", solution.id, header, flags, versions, own, device_build.stamp(gpu))
        folder = builds.resolve() / content_key(*what, emulation_key())
        if found := find(folder):
            return found
        started = time.monotonic()
        with work_folder(builds) as work:
            result = await _Build(work, task, solution, flags, self._limit_s, gpu).run(header, compilers)
            took = (time.monotonic() - started) * 1e3
            result = result.model_copy(update={"toolchain": "; ".join(sorted({*versions.values()})), "build_ms": took})
            return keep_final(work, folder, result)


class _Build:
    """One build in its folder: src/, include/ and an assembly and code object a source and target."""

    def __init__(
        self,
        work: Path,
        task: Task,
        solution: Solution,
        flags: list[str],
        limit_s: float,
        gpu: device_access.Gpu | None,
    ) -> None:
        self._work, self._task, self._solution = work, task, solution
        self._flags, self._limit_s, self._gpu = flags, limit_s, gpu

    async def run(self, header: str, compilers: Mapping[str, HipCompiler]) -> CompileResult:
        write_sources(self._work / "src", {HEADER: header, **self._solution.sources})
        shutil.copytree(HEADERS, self._work / "include" / "hip")
        (self._work / "tmp").mkdir()
        found = [*entry_errors(self._task, self._solution, "hip"), *_left_out(self._solution, compilers)]
        done: dict[str, tuple[list[Diagnostic], list[KernelReport]]] = {}
        known = self._solution.chosen() | {n: a.value for n, a in self._task.axes.items() if a.value is not None}
        sources = HipSources(self._work, self._solution.sources, _units(self._solution), known)

        async def one(target: str, compiler: HipCompiler) -> None:
            done[target] = await sources.for_target(target, compiler, self._flags, self._limit_s)

        async with anyio.create_task_group() as group:
            for target, compiler in compilers.items():
                group.start_soon(one, target, compiler)
        found += [problem for target in compilers for problem in done[target][0]]
        reports = [kernel for target in compilers for kernel in done[target][1]]
        found = merged(found, list(compilers), any_target=not self._solution.targets)
        shutil.rmtree(self._work / "tmp")
        shutil.rmtree(self._work / "include")
        ok = not any(one.severity == "error" for one in found)
        result = CompileResult(
            ok=ok,
            solution=self._solution.id,
            toolkit="hip",
            command=next(iter(compilers.values())).compile(next(iter(compilers)), self._flags, "SOURCE", "OUTPUT.s"),
            diagnostics=found[: diagnostics.MOST],
            log="\n".join(sorted(sources.log)),
            kernels=reports,
        )
        return await self._runnable(result, header, compilers) if ok else result

    async def _runnable(
        self, result: CompileResult, header: str, compilers: Mapping[str, HipCompiler]
    ) -> CompileResult:
        """The same with what the judge can load: for the device that is here, if ROCm is too, else emulated."""
        hipcc = next((one.program for one in compilers.values() if one.kind == "hipcc"), "")
        if not self._gpu or self._gpu.stand_in or not hipcc:
            emulated = await self._emulated(result, header)
            return device_build.runs_on(self._gpu, emulated) if self._gpu and self._gpu.stand_in else emulated
        sources, units = {HEADER: header, **self._solution.sources}, _units(self._solution)
        command = [hipcc, *self._flags]
        built = await device_build.device_library(self._work, sources, units, command, self._gpu, self._limit_s)
        return device_build.with_library(self._gpu, result, built)

    async def _emulated(self, result: CompileResult, header: str) -> CompileResult:
        """The library that the judge loads where no AMD GPU is; what it cannot run is said and is no error."""
        built = await emulated_library(self._work, self._task, self._solution, "hip", header, limit_s=self._limit_s)
        log = "\n".join(part for part in (result.log, built.log) if part)
        # A library is found again under the name in the result, once the folder has got its place.
        return result.model_copy(
            update={"artifact": built.library, "not_timed": built.why_not() or NOT_TIMED, "log": log}
        )


async def _chosen(targets: Sequence[str]) -> dict[str, HipCompiler]:
    """A compiler for each target: for each that is asked for, else for those of the usual ones that one here knows."""
    if targets:
        return {amd.checked_target(target): await compiler_for(amd.checked_target(target)) for target in targets}
    found: dict[str, HipCompiler] = {}
    why: list[str] = []
    for target in amd.DEFAULT_TARGETS:
        try:
            found[target] = await compiler_for(target)
        except ToolkitUnavailable as error:
            why.append(str(error))
    if not found:
        raise ToolkitUnavailable(why[0])
    return found


def _left_out(solution: Solution, compilers: Mapping[str, HipCompiler]) -> list[Diagnostic]:
    if solution.targets:
        return []
    return [
        Diagnostic(
            severity="warning", message=f"not compiled for {target}: no compiler here knows it. Remedy: {REMEDY}"
        )
        for target in amd.DEFAULT_TARGETS
        if target not in compilers
    ]


def _flags(solution: Solution) -> list[str]:
    for flag in solution.flags:
        if not _ALLOWED.fullmatch(flag):
            raise InvalidInput(
                f"compiler flag {flag!r} is refused: -O*, -D*, -U*, -std=*, -ffast-math, -ffp-contract=*,"
                " -f[no-]unroll-loops, -munsafe-fp-atomics and -Wno-* count"
            )
    chosen = [f"-D{name}={value}" for name, value in solution.chosen().items()]
    return [*DEFAULT_FLAGS, *solution.flags, *chosen, "-I."]


def _units(solution: Solution) -> list[str]:
    """The files to compile; the rest are headers."""
    if any(PurePosixPath(name).parts[0] == HEADER for name in solution.sources):
        raise InvalidInput(f"{HEADER} is generated from the task: leave it out of the solution and include it")
    units = sorted(name for name in solution.sources if PurePosixPath(name).suffix in _UNITS)
    if solution.entry_file not in units:
        raise InvalidInput(f"the entry file {solution.entry_file!r} of a hip solution must be a .hip or .cpp file")
    return units


TOOLKIT: Toolkit = HipToolkit()
