"""C++ solutions: g++ or clang++ makes a shared library with one C function. Knows no way to run it."""

import re
import shutil
import time
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from toolkits.core import diagnostics, process
from toolkits.core.builds import content_key, find, keep, work_folder, write_sources
from toolkits.core.compiler import Compiler, binutils, cpu, enclosed, environment, name_inside
from toolkits.core.errors import InvalidInput
from toolkits.core.schema import CompileResult, Diagnostic, Solution, Task
from toolkits.core.signature import c_header, c_plan_signature, c_signature, plan_of
from toolkits.core.toolkit import Purpose, Toolkit

DEFAULT_FLAGS = ("-O3", "-march=native", "-std=c++20", "-fopenmp", "-fno-math-errno", "-fno-trapping-math")
WATCHED = ("-O1", "-g", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls")
PURPOSE_FLAGS: Mapping[Purpose, tuple[str, ...]] = {
    "run": (),
    # Last, so that they win: valgrind executes no AVX-512.
    "profile": ("-march=x86-64-v3", "-mno-avx512f", "-g"),
    "debug": ("-O0", "-g"),
    "sanitize": (*WATCHED, "-fsanitize=address,undefined", "-fsanitize-recover=address,undefined"),
    "races": (*WATCHED, "-O0", "-fsanitize=thread"),
}
LINK_FLAGS = ("-shared", "-fPIC", "-Wl,--no-undefined", "-fdiagnostics-color=never")
COMPILE_LIMIT_S = 60.0
LIBRARY = "kernel.so"
HEADER = "task.h"

_ALLOWED = re.compile(r"-(O|f|m|D|U|std=|W).*")
_REFUSED = re.compile(
    r"-(W[lap],|fplugin|fpass-plugin|fdump|fprofile|fauto-profile|fmodule|fsanitize|fuse-ld|fdiagnostics|fopt-info"
    r"|fsave-|fsyntax-only|fcallgraph|fstack-usage|ftest-coverage|fmax-errors|ferror-limit|mllvm|f\w+-prefix-map).*"
)
_NOT_OF_THE_SOURCE = re.compile(r"Killed signal|No space left on device|cannot allocate memory|out of memory")


class CppToolkit:
    """Builds one shared library a solution, cached by content, flags, compiler and CPU."""

    name = "cpp"

    def __init__(self, limit_s: float = COMPILE_LIMIT_S) -> None:
        self._compiler = Compiler()
        self._limit_s = limit_s

    def missing(self) -> str:
        return self._compiler.missing()

    async def compile(self, task: Task, solution: Solution, builds: Path, purpose: Purpose = "run") -> CompileResult:
        """Build under `builds`, or find the same content already built there."""
        plan_of(task, solution)
        header = c_header(task, solution.entry_function, solution.plan_function)
        arguments = [*_flags(solution, purpose), *_units(solution)]
        version = await self._compiler.version()
        folder = builds.resolve() / content_key(solution.id, header, arguments, version, cpu(), purpose)
        if found := find(folder):
            return found
        with work_folder(builds) as work:
            result = await _build(work, task, solution, header, [self._compiler.path(), *arguments], self._limit_s)
            result = result.model_copy(update={"toolchain": version})
            # A time limit or a full memory says something of this machine, now: the next call tries again.
            return keep(work, folder, result) if _is_final(result) else result


async def _build(
    work: Path, task: Task, solution: Solution, header: str, command: list[str], limit_s: float
) -> CompileResult:
    sources, scratch = work / "src", work / "tmp"
    scratch.mkdir()
    write_sources(sources, {HEADER: header, **solution.sources})
    started = time.monotonic()
    # The file names in messages and debug information are those of the solution: the compiler sees only them.
    inside = name_inside(work)
    whole = [*command, f"-ffile-prefix-map={inside}/src=.", "-o", f"../{LIBRARY}"]
    done = await process.run(
        enclosed(whole, work, "src"), cwd=sources, timeout_s=limit_s, env=environment(inside / "tmp")
    )
    log = done.output.replace(f"{inside}/tmp/", "").replace(f"{inside}/src/", "")
    found = diagnostics.parse(log)
    if done.returncode is None:
        found = [
            Diagnostic(severity="error", message=f"compile_timeout: stopped after {limit_s:g} s"),
            *found,
        ]
    elif done.returncode != 0:
        found = diagnostics.with_error(found, log)
    else:
        found = [*await _entry_errors(work / LIBRARY, task, solution), *found]
    shutil.rmtree(scratch)
    ok = not any(diagnostic.severity == "error" for diagnostic in found)
    return CompileResult(
        ok=ok,
        solution=solution.id,
        toolkit="cpp",
        artifact=work / LIBRARY if ok else None,
        command=command,
        diagnostics=found[: diagnostics.MOST],
        log=log,
        build_ms=(time.monotonic() - started) * 1e3,
    )


async def _entry_errors(library: Path, task: Task, solution: Solution) -> list[Diagnostic]:
    """What is wrong with the library's entry symbols; `nm`, which reads what a source made, sees nothing else."""
    command = [binutils("nm"), "-D", "--defined-only", f"./{library.name}"]
    work = library.parent
    boxed = enclosed(command, work, ".")
    done = await process.run(boxed, cwd=work, timeout_s=20, env=environment(name_inside(work)), keep=4_000_000)
    if done.returncode != 0:
        message = f"nm cannot read the library that these sources make: {done.output.strip()[-300:]}"
        return [Diagnostic(severity="error", message=message, file=solution.entry_file)]
    symbols = {fields[-1]: fields[-2] for line in done.output.splitlines() if len(fields := line.split()) > 1}
    return [
        Diagnostic(severity="error", message=f"missing entry symbol: define exactly `{signature}`, exported", file=file)
        for function, file, signature in _wanted(task, solution)
        if symbols.get(function, "") not in {"T", "W", "i"}
    ]


def _wanted(task: Task, solution: Solution) -> list[tuple[str, str, str]]:
    """The functions that a library must define: name, file and declaration."""
    planned, run = solution.plan_function, solution.entry_function
    wanted = [(run, solution.entry_file, c_signature(task, run, planned=bool(planned)))]
    if planned:
        wanted.append((planned, solution.plan_entry_point.split("::")[0], c_plan_signature(task, planned)))
    return wanted


def _flags(solution: Solution, purpose: Purpose) -> list[str]:
    for flag in solution.flags:
        if not _ALLOWED.fullmatch(flag) or _REFUSED.match(flag):
            raise InvalidInput(
                f"compiler flag {flag!r} is refused: -O*, -f*, -m*, -D*, -U*, -std=* and -W* count, without plug-ins,"
                " dumps, profiles, sanitizers and flags for the linker or assembler"
            )
    chosen = [f"-D{name}={value}" for name, value in solution.chosen().items()]
    return [*DEFAULT_FLAGS, *solution.flags, *chosen, *PURPOSE_FLAGS[purpose], *LINK_FLAGS, "-I."]


def _units(solution: Solution) -> list[str]:
    """The files to compile; the rest are headers."""
    if any(PurePosixPath(name).parts[0] == HEADER for name in solution.sources):
        raise InvalidInput(f"{HEADER} is generated from the task: leave it out of the solution and include it")
    units = sorted(name for name in solution.sources if PurePosixPath(name).suffix in {".cpp", ".cc", ".cxx"})
    if solution.entry_file not in units:
        raise InvalidInput(f"the entry file {solution.entry_file!r} of a cpp solution must be a .cpp, .cc or .cxx file")
    return [f"./{name}" for name in units]


def _is_final(result: CompileResult) -> bool:
    timed_out = any(diagnostic.message.startswith("compile_timeout") for diagnostic in result.diagnostics)
    return result.ok or not (timed_out or _NOT_OF_THE_SOURCE.search(result.log))


TOOLKIT: Toolkit = CppToolkit()
