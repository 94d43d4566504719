"""HIP solutions: each kernel compiled for AMD GPUs and reported; what runs here is the same source emulated on the CPU.

Needs no GPU and no ROCm. Predicts the launches that a GPU would refuse, and knows no way to run anything.
"""

import re
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

import anyio

from toolkits.core import diagnostics, process
from toolkits.core.builds import content_key, find, keep, work_folder, write_sources
from toolkits.core.compiler import enclosed, environment, name_inside
from toolkits.core.errors import InvalidInput, ToolkitUnavailable
from toolkits.core.gpu import amd
from toolkits.core.gpu.amd_assembly import Kernel
from toolkits.core.gpu.amd_assembly import kernels as kernels_of
from toolkits.core.gpu.emulate import NOT_TIMED, emulated_library, emulation_key
from toolkits.core.gpu.entry_functions import entry_errors
from toolkits.core.gpu.hip_compilers import HEADERS, REMEDY, HipCompiler, compiler_for, installed
from toolkits.core.gpu.launches import Launch, launches
from toolkits.core.gpu.names import base, demangled, short
from toolkits.core.schema import CompileResult, Diagnostic, KernelReport, Solution, Task
from toolkits.core.signature import device_header, plan_of
from toolkits.core.toolkit import Purpose, Toolkit

DEFAULT_FLAGS = ("-O3", "-std=c++20", "-gline-tables-only", "-fno-color-diagnostics")
COMPILE_LIMIT_S = 120.0
HEADER = "task.h"
ASSEMBLY_BYTES = 20_000_000
"""Of one source; more is not read."""
_UNITS = {".hip", ".cpp", ".cc", ".cxx"}
_ALLOWED = re.compile(
    r"-(O[0-3s]|D\w+(=\S*)?|U\w+|std=(c|gnu)\+\+\d\w|ffast-math|fno-math-errno|ffp-contract=\w+|f(no-)?unroll-loops"
    r"|munsafe-fp-atomics|W(all|extra|no-[\w-]+))"
)
_COUNT = re.compile(r"^\d+ (?:error|warning)s? generated")


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
        folder = builds.resolve() / content_key("hip", solution.id, header, flags, versions, own, emulation_key())
        if found := find(folder):
            return found
        started = time.monotonic()
        with work_folder(builds) as work:
            result = await _Build(work, task, solution, flags, self._limit_s).run(header, compilers)
            took = (time.monotonic() - started) * 1e3
            result = result.model_copy(update={"toolchain": "; ".join(sorted({*versions.values()})), "build_ms": took})
            return keep(work, folder, result) if _is_final(result) else result


class _Build:
    """One build in its folder: src/, include/ and an assembly and code object a source and target."""

    def __init__(self, work: Path, task: Task, solution: Solution, flags: list[str], limit_s: float) -> None:
        self._work, self._task, self._solution = work, task, solution
        self._flags, self._limit_s = flags, limit_s
        self._log: list[str] = []

    async def run(self, header: str, compilers: Mapping[str, HipCompiler]) -> CompileResult:
        write_sources(self._work / "src", {HEADER: header, **self._solution.sources})
        shutil.copytree(HEADERS, self._work / "include" / "hip")
        (self._work / "tmp").mkdir()
        found = [*entry_errors(self._task, self._solution, "hip"), *_left_out(self._solution, compilers)]
        done: dict[str, tuple[list[Diagnostic], list[KernelReport]]] = {}

        async def one(target: str, compiler: HipCompiler) -> None:
            done[target] = await self._for_target(target, compiler)

        async with anyio.create_task_group() as group:
            for target, compiler in compilers.items():
                group.start_soon(one, target, compiler)
        found += [problem for target in compilers for problem in done[target][0]]
        reports = [kernel for target in compilers for kernel in done[target][1]]
        found = _merged(found, list(compilers), any_target=not self._solution.targets)
        shutil.rmtree(self._work / "tmp")
        shutil.rmtree(self._work / "include")
        ok = not any(one.severity == "error" for one in found)
        result = CompileResult(
            ok=ok,
            solution=self._solution.id,
            toolkit="hip",
            command=next(iter(compilers.values())).compile(next(iter(compilers)), self._flags, "SOURCE", "OUTPUT.s"),
            diagnostics=found[: diagnostics.MOST],
            log="\n".join(sorted(self._log)),
            kernels=reports,
        )
        return await self._emulated(result, header) if ok else result

    async def _emulated(self, result: CompileResult, header: str) -> CompileResult:
        """The library that the judge loads where no AMD GPU is; what it cannot run is said and is no error."""
        built = await emulated_library(self._work, self._task, self._solution, "hip", header, limit_s=self._limit_s)
        log = "\n".join(part for part in (result.log, built.log) if part)
        # A library is found again under the name in the result, once the folder has got its place.
        return result.model_copy(
            update={"artifact": built.library, "not_timed": built.why_not() or NOT_TIMED, "log": log}
        )

    async def _for_target(self, target: str, compiler: HipCompiler) -> tuple[list[Diagnostic], list[KernelReport]]:
        """Diagnostics, then reports, of every source on one architecture."""
        found: list[Diagnostic] = []
        kernels: list[Kernel] = []
        for unit in _units(self._solution):
            stem = f"{PurePosixPath(unit).as_posix().replace('/', '_')}.{target}"
            problems = await self._step(compiler.compile(target, self._flags, f"./{unit}", f"../{stem}.s"), target)
            if not _errors(problems):
                kernels += kernels_of(_text(self._work / f"{stem}.s"))
                problems += await self._linked(compiler, target, stem)
            found += problems
        names = await demangled([kernel.symbol for kernel in kernels], self._work)
        known = self._solution.chosen() | {n: a.value for n, a in self._task.axes.items() if a.value is not None}
        started = launches(self._solution.sources, known)
        reports: list[KernelReport] = []
        for kernel in kernels:
            name = short(names.get(kernel.symbol, kernel.symbol))
            own = [launch for launch in started if launch.kernel == base(name)]
            found += amd.refused(kernel, name, target, own)
            reports.append(amd.report(kernel, name, target, _most_threads(own), _most_dynamic(own)))
        return found, reports

    async def _linked(self, compiler: HipCompiler, target: str, stem: str) -> list[Diagnostic]:
        """A device function that nobody defines is only seen here."""
        found: list[Diagnostic] = []
        if link := compiler.link(f"../tmp/{stem}.o", f"../{stem}.co"):
            # clang names a file twice where a source is called ./x, and its assembler then refuses the line table.
            text = _text(self._work / f"{stem}.s")
            (self._work / "tmp" / f"{stem}.s").write_text(
                re.sub(r"(?m)^\s+\.(?:loc|file)\s.*\n", "", text), encoding="utf-8"
            )
            found = await self._step(compiler.assemble(target, f"../tmp/{stem}.s", f"../tmp/{stem}.o"), target)
            if not _errors(found):
                found += await self._step(link, target)
        return [one.model_copy(update={"message": _undefined(one.message)}) for one in found]

    async def _step(self, command: list[str], target: str) -> list[Diagnostic]:
        inside = name_inside(self._work)
        boxed, env = enclosed(command, self._work, "src"), environment(inside / "tmp")
        done = await process.run(boxed, cwd=self._work / "src", timeout_s=self._limit_s, env=env)
        log = done.output.replace(f"{inside}/src/", "").replace("../include/hip/", "hip/")
        if log.strip():
            self._log.append(f"[{target}]\n{log.rstrip()}")
        if done.returncode is None:
            return [
                Diagnostic(severity="error", message=f"compile_timeout: stopped after {self._limit_s:g} s [{target}]")
            ]
        found = diagnostics.parse(log)
        if done.returncode != 0:
            lines = [line for line in log.splitlines() if not _COUNT.match(line)]
            found = diagnostics.with_error(found, "\n".join(lines))
        return [one.model_copy(update={"message": f"{one.message} [{target}]"}) for one in found]


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


def _text(path: Path) -> str:
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(ASSEMBLY_BYTES)


def _merged(found: list[Diagnostic], targets: list[str], *, any_target: bool) -> list[Diagnostic]:
    """One message where every target says the same; errors first.

    Where nobody named the targets, one that builds is enough, and what others say is a warning.
    """
    tagged = [re.search(r"\[(gfx\w+)\]$", one.message) for one in found]
    bad = {match[1] if match else "" for one, match in zip(found, tagged, strict=True) if one.severity == "error"}
    if any_target and "" not in bad and len(bad) < len(targets):
        found = [one.model_copy(update={"severity": "warning"}) if one.severity == "error" else one for one in found]
    plain = [one.model_copy(update={"message": re.sub(r" \[gfx\w+\]$", "", one.message)}) for one in found]
    told = [bare if plain.count(bare) >= len(targets) else one for one, bare in zip(found, plain, strict=True)]
    kept = [one for at, one in enumerate(told) if one not in told[:at]]
    order = {"error": 0, "warning": 1, "note": 2}
    return sorted(kept, key=lambda one: order[one.severity])


def _errors(found: list[Diagnostic]) -> bool:
    return any(one.severity == "error" for one in found)


def _undefined(message: str) -> str:
    """The linker's word for it, and what it means."""
    match = re.search(r"undefined (?:hidden )?symbol: (.*?)( \[gfx\w+\])?$", message)
    if not match:
        return message
    return f"device function {match[1]} is declared but not defined: define it in the same file{match[2] or ''}"


def _most_threads(own: list[Launch]) -> int | None:
    return max((launch.threads for launch in own if launch.threads), default=None)


def _most_dynamic(own: list[Launch]) -> int | None:
    return max((one.dynamic_shared_bytes for one in own if one.dynamic_shared_bytes is not None), default=None)


def _is_final(result: CompileResult) -> bool:
    """A time limit says something of this machine, now: the next call tries again."""
    return not any("compile_timeout" in text for text in (result.not_timed, *(d.message for d in result.diagnostics)))


TOOLKIT: Toolkit = HipToolkit()
