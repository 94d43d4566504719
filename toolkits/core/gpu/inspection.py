"""What compilers make of CUDA files, target by target: reports, diagnostics, logs. Knows no task and no cache."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Protocol

import anyio

from toolkits.core.builds import TIMEOUT
from toolkits.core.gpu import cubin, messages, names, nvcc, ptxas, report, sass, toolchain
from toolkits.core.gpu.launches import Launch, launches
from toolkits.core.gpu.nvcc import Compiled
from toolkits.core.schema import Diagnostic, KernelReport

MOST_KERNELS = 64


class Compile(Protocol):
    """nvcc or NVRTC."""

    async def __call__(self, work: Path, unit: str, target: str, flags: Sequence[str], limit_s: float) -> Compiled: ...


@dataclass(frozen=True)
class Job:
    """What to compile, and how."""

    work: Path
    sources: Mapping[str, str]
    units: Sequence[str]
    """Files with kernels; the rest are headers."""
    targets: Sequence[str]
    flags: Sequence[str]
    limit_s: float
    known: Mapping[str, int] = field(default_factory=dict[str, int])
    """Names that the source may use for numbers."""
    any_target: bool = False
    """Nobody named the targets: one that builds is enough, and what others say is a warning."""
    read_code: bool = True
    """Disassemble every kernel; else only where registers are short."""


@dataclass
class Inspected:
    """Of all targets together."""

    kernels: list[KernelReport]
    diagnostics: list[Diagnostic]
    log: str
    command: list[str]
    """Of the first target."""

    @property
    def ok(self) -> bool:
        return not any(one.severity == "error" for one in self.diagnostics)


async def inspect(job: Job, compile: Compile) -> Inspected:
    """Compile every unit for every target at the same time, read what came of it, foresee what cannot be launched."""
    tasks = [(unit, target) for target in job.targets for unit in job.units]
    built: dict[tuple[str, str], Compiled] = {}

    async def one(unit: str, target: str) -> None:
        built[unit, target] = await compile(job.work, unit, target, job.flags, job.limit_s)

    await _all_of([partial(one, *task) for task in tasks])
    done = [built[task] for task in tasks]
    log = "\n".join(f"== {one.target} {one.unit}\n{one.log}" for one in done)
    known = await names.demangled(messages.mangled(log), job.work)
    kernels = await _kernels(job, done, known)
    called = launches(job.sources, job.known)
    found = [(target, _diagnostics(job, target, done, kernels, called, known)) for target in job.targets]
    reports = [report.report(kernel, report.of_kernel(kernel, called)) for kernel in kernels]
    diagnostics = [*_weighed(found, any_target=job.any_target), *_unread(job)]
    return Inspected(reports, diagnostics, log, done[0].command if done else [])


async def _all_of(calls: "Sequence[partial[object]]") -> None:
    async with anyio.create_task_group() as group:
        for call in calls:
            group.start_soon(call)  # pyright: ignore[reportArgumentType]


async def _kernels(job: Job, done: Sequence[Compiled], known: Mapping[str, str]) -> list[report.Kernel]:
    """Of everything that compiled, in the order of targets and sources, with machine code where it is wanted."""
    found: dict[tuple[str, str], report.Kernel] = {}
    images = [one for one in done if one.ok]
    for one in images:
        limits = cubin.limits(one.cubin.read_bytes())
        for has in sorted(ptxas.resources(one.log), key=lambda has: has.name)[:MOST_KERNELS]:
            kernel = report.Kernel(names.short(known.get(has.name, has.name)), has)
            found[one.target, has.name] = replace(kernel, limits=limits.get(has.name, cubin.Limits()))

    async def read(one: Compiled) -> None:
        mine = {name: kernel for (target, name), kernel in found.items() if target == one.target}
        crowded = any(kernel.crowded for kernel in mine.values())
        code = (
            sass.functions(await nvcc.disassembled(job.work, one.cubin, "-g", "-c")) if job.read_code or crowded else {}
        )
        counted = await nvcc.disassembled(job.work, one.cubin, "-c", "-lrm", "count") if crowded else ""
        alive = sass.live_registers(counted)
        for name in code.keys() & mine.keys():
            lives = alive.get(name, {}) if mine[name].crowded else {}
            found[one.target, name] = replace(mine[name], code=code[name], alive=lives)

    await _all_of([partial(read, one) for one in images])
    return list(found.values())


def _diagnostics(
    job: Job,
    target: str,
    done: Sequence[Compiled],
    kernels: Sequence[report.Kernel],
    called: Sequence[Launch],
    known: Mapping[str, str],
) -> list[Diagnostic]:
    """What one target's compilers said, and what its launches would do."""
    mine = [one for one in done if one.target == target]
    said = [diagnostic for one in mine for diagnostic in _said(one, known, job.limit_s)]
    foreseen = [
        failure
        for kernel in kernels
        if kernel.resources.target == target
        for failure in report.failures(kernel, report.of_kernel(kernel, called), job.sources)
    ]
    return list(dict.fromkeys([*said, *foreseen]))


def _said(one: Compiled, known: Mapping[str, str], limit_s: float) -> list[Diagnostic]:
    short = {mangled: names.short(name) for mangled, name in known.items()}
    found = messages.parse(one.log, one.target, one.ptx, short)
    if one.returncode is None:
        return [Diagnostic(severity="error", message=f"{TIMEOUT}: {one.target}: stopped after {limit_s:g} s"), *found]
    if not one.ok and not any(diagnostic.severity == "error" for diagnostic in found):
        last = one.log.strip()[-300:] or f"the compiler ended with {one.returncode}"
        return [Diagnostic(severity="error", message=f"{one.target}: {last}", file=one.unit), *found]
    return found


def _unread(job: Job) -> list[Diagnostic]:
    if not job.read_code or toolchain.program("nvdisasm"):
        return []
    remedy = toolchain.REMEDIES["nvdisasm"]
    return [Diagnostic(severity="note", message=f"the machine code was not read, which nvdisasm is for: {remedy}")]


def _weighed(found: Sequence[tuple[str, list[Diagnostic]]], *, any_target: bool) -> list[Diagnostic]:
    """Errors first, each once. Where any target will do and one is good, the others' errors are warnings."""
    bad = {target for target, said in found if any(one.severity == "error" for one in said)}
    forgiven = any_target and len(bad) < len(found)
    weighed = [
        one.model_copy(update={"severity": "warning", "message": f"not for {target}: {one.message}"})
        if forgiven and one.severity == "error"
        else one
        for target, said in found
        for one in said
    ]
    order = {"error": 0, "warning": 1, "note": 2}
    return sorted(dict.fromkeys(weighed), key=lambda one: order[one.severity])
