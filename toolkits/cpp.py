"""C++ solutions: g++ or clang++ makes a shared library with one C function. Knows no way to run it."""

import re
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from toolkits.core import bindings, diagnostics, process
from toolkits.core.bindings import Binding
from toolkits.core.builds import content_key, find, keep_final, work_folder, write_sources
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
BOUND_LINK_FLAGS = ("-shared", "-fPIC", "-Wl,-s", "-fdiagnostics-color=never")
"""A library with a binding is encoded for the worker: without the names of its inner functions."""
COMPILE_LIMIT_S = 60.0
LIBRARY = "kernel.so"
BOUND = "bound"
HEADER = "task.h"

_ALLOWED = re.compile(r"-(O|f|m|D|U|std=|W).*")
_REFUSED = re.compile(
    r"-(W[lap],|fplugin|fpass-plugin|fdump|fprofile|fauto-profile|fmodule|fsanitize|fuse-ld|fdiagnostics|fopt-info"
    r"|fsave-|fsyntax-only|fcallgraph|fstack-usage|ftest-coverage|fmax-errors|ferror-limit|mllvm|f\w+-prefix-map).*"
)


@dataclass(frozen=True)
class Recipe:
    """All that decides what is built of a solution."""

    files: Mapping[str, str]
    """Sources, and what the toolkit adds to them."""
    arguments: list[str]
    """Of the compiler."""
    wanted: list[tuple[str, str, str]]
    """What the library must define: symbol, file and declaration."""
    limit_s: float
    binding: Binding | None = None


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
        recipe = _bound(task, solution) if solution.binding else _plain(task, solution, purpose, self._limit_s)
        version = await self._compiler.version()
        about = (recipe.binding.package, purpose) if recipe.binding else (purpose,)
        folder = builds.resolve() / content_key(
            solution.id, recipe.files[HEADER], recipe.arguments, version, cpu(), *about
        )
        if found := find(folder):
            return found
        with work_folder(builds) as work:
            result = await _build(work, solution, recipe, self._compiler.path())
            result = result.model_copy(update={"toolchain": version})
            return keep_final(work, folder, result)


def _plain(task: Task, solution: Solution, purpose: Purpose, limit_s: float) -> Recipe:
    """A function on pointers."""
    header = c_header(task, solution.entry_function, solution.plan_function)
    flags = [*_flags(solution), *PURPOSE_FLAGS[purpose], *LINK_FLAGS, "-I."]
    return Recipe(
        {HEADER: header, **solution.sources}, [*flags, *_units(solution)], _declarations(task, solution), limit_s
    )


def _bound(task: Task, solution: Solution) -> Recipe:
    """A function on tensors: every purpose is the same build, since no driver of ours could call another."""
    assert solution.binding
    binding, exports, unit = bindings.binding(solution.binding), bindings.exports(solution), f"{bindings.UNIT}.cpp"
    if unit in solution.sources:
        raise InvalidInput(f"{unit} is made by the toolkit: call the solution's file something else")
    units = _units(solution)
    if exports:  # it includes the entry file
        units = [one for one in units if one != f"./{solution.entry_file}"] + [f"./{unit}"]
    flags = [*_flags(solution), *BOUND_LINK_FLAGS, "-I.", *binding.compile_flags()]
    names = [name for name in (solution.entry_function, solution.plan_function) if name]
    return Recipe(
        {HEADER: bindings.header(task), **solution.sources, **({unit: exports} if exports else {})},
        [*flags, *units, *binding.library_flags()],
        [(binding.symbol(name), solution.entry_file, binding.declaration(name)) for name in names],
        bindings.LIMIT_S,
        binding,
    )


async def _build(work: Path, solution: Solution, recipe: Recipe, compiler: str) -> CompileResult:
    sources, scratch = work / "src", work / "tmp"
    scratch.mkdir()
    write_sources(sources, recipe.files)
    started = time.monotonic()
    # The file names in messages and debug information are those of the solution: the compiler sees only them.
    inside = name_inside(work)
    command = [compiler, *recipe.arguments]
    whole = [*command, f"-ffile-prefix-map={inside}/src=.", "-o", f"../{LIBRARY}"]
    visible = recipe.binding.visible() if recipe.binding else []
    boxed = enclosed(whole, work, "src", visible)
    done = await process.run(boxed, cwd=sources, timeout_s=recipe.limit_s, env=environment(inside / "tmp"))
    log = done.output.replace(f"{inside}/tmp/", "").replace(f"{inside}/src/", "")
    found = diagnostics.parse(log)
    if done.returncode is None:
        message = f"compile_timeout: stopped after {recipe.limit_s:g} s"
        found = [Diagnostic(severity="error", message=message), *found]
    elif done.returncode != 0:
        found = diagnostics.with_error(found, log)
    else:
        found = [*await _entry_errors(work / LIBRARY, recipe.wanted), *found]
    shutil.rmtree(scratch)
    result = CompileResult(
        ok=not any(diagnostic.severity == "error" for diagnostic in found),
        solution=solution.id,
        toolkit="cpp",
        command=command,
        diagnostics=found[: diagnostics.MOST],
        log=log,
        build_ms=(time.monotonic() - started) * 1e3,
    )
    return result.model_copy(update=_loadable(work, recipe)) if result.ok else result


def _loadable(work: Path, recipe: Recipe) -> dict[str, object]:
    """What a worker loads: the library, or the host that shows a bound one's functions."""
    if not recipe.binding:
        return {"artifact": work / LIBRARY}
    write_sources(work / BOUND, bindings.artifact(recipe.binding.name, (work / LIBRARY).read_bytes()))
    return {"artifact": work / BOUND, "loads_as": "python", "host": bindings.HOST}


async def _entry_errors(library: Path, wanted: list[tuple[str, str, str]]) -> list[Diagnostic]:
    """What is wrong with the library's entry symbols; `nm`, which reads what a source made, sees nothing else."""
    command = [binutils("nm"), "-D", "--defined-only", f"./{library.name}"]
    work = library.parent
    boxed = enclosed(command, work, ".")
    done = await process.run(boxed, cwd=work, timeout_s=20, env=environment(name_inside(work)), keep=4_000_000)
    if done.returncode != 0:
        message = f"nm cannot read the library that these sources make: {done.output.strip()[-300:]}"
        return [Diagnostic(severity="error", message=message, file=wanted[0][1])]
    symbols = {fields[-1]: fields[-2] for line in done.output.splitlines() if len(fields := line.split()) > 1}
    return [
        Diagnostic(severity="error", message=f"missing entry symbol: define exactly `{signature}`, exported", file=file)
        for symbol, file, signature in wanted
        if symbols.get(symbol, "") not in {"T", "W", "i"}
    ]


def _declarations(task: Task, solution: Solution) -> list[tuple[str, str, str]]:
    """The functions that a library must define: name, file and declaration."""
    planned, run = solution.plan_function, solution.entry_function
    wanted = [(run, solution.entry_file, c_signature(task, run, planned=bool(planned)))]
    if planned:
        wanted.append((planned, solution.plan_entry_point.split("::")[0], c_plan_signature(task, planned)))
    return wanted


def _flags(solution: Solution) -> list[str]:
    for flag in solution.flags:
        if not _ALLOWED.fullmatch(flag) or _REFUSED.match(flag):
            raise InvalidInput(
                f"compiler flag {flag!r} is refused: -O*, -f*, -m*, -D*, -U*, -std=* and -W* count, without plug-ins,"
                " dumps, profiles, sanitizers and flags for the linker or assembler"
            )
    chosen = [f"-D{name}={value}" for name, value in solution.chosen().items()]
    return [*DEFAULT_FLAGS, *solution.flags, *chosen]


def _units(solution: Solution) -> list[str]:
    """The files to compile; the rest are headers."""
    if any(PurePosixPath(name).parts[0] == HEADER for name in solution.sources):
        raise InvalidInput(f"{HEADER} is generated from the task: leave it out of the solution and include it")
    units = sorted(name for name in solution.sources if PurePosixPath(name).suffix in {".cpp", ".cc", ".cxx"})
    if solution.entry_file not in units:
        raise InvalidInput(f"the entry file {solution.entry_file!r} of a cpp solution must be a .cpp, .cc or .cxx file")
    return [f"./{name}" for name in units]


TOOLKIT: Toolkit = CppToolkit()
