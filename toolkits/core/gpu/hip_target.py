"""HIP sources on one AMD architecture: assembly, code objects, a report a kernel. Knows no task and no cache."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from toolkits.core import diagnostics, process
from toolkits.core.builds import TIMEOUT
from toolkits.core.compiler import enclosed, environment, name_inside
from toolkits.core.gpu import amd
from toolkits.core.gpu.amd_assembly import Kernel
from toolkits.core.gpu.amd_assembly import kernels as kernels_of
from toolkits.core.gpu.hip_compilers import HipCompiler
from toolkits.core.gpu.launches import Launch, launches
from toolkits.core.gpu.names import base, demangled, short
from toolkits.core.schema import Diagnostic, KernelReport

ASSEMBLY_BYTES = 20_000_000
"""Of one source; more is not read."""
_COUNT = re.compile(r"^\d+ (?:error|warning)s? generated")


@dataclass(frozen=True)
class HipSources:
    """Sources in `work`/src, with our headers in `work`/include and room in `work`/tmp."""

    work: Path
    sources: Mapping[str, str]
    units: Sequence[str]
    known: Mapping[str, int]
    """Constants that launches may name."""
    log: list[str] = field(default_factory=list[str])
    """What the compilers said, a part a step."""

    async def for_target(
        self, target: str, compiler: HipCompiler, flags: Sequence[str], limit_s: float
    ) -> tuple[list[Diagnostic], list[KernelReport]]:
        """Diagnostics, then reports, of every source on one architecture."""
        found: list[Diagnostic] = []
        kernels: list[Kernel] = []
        for unit in self.units:
            stem = f"{PurePosixPath(unit).as_posix().replace('/', '_')}.{target}"
            command = compiler.compile(target, list(flags), f"./{unit}", f"../{stem}.s")
            problems = await self._step(command, target, limit_s)
            if not _errors(problems):
                kernels += kernels_of(_text(self.work / f"{stem}.s"))
                problems += await self._linked(compiler, target, stem, limit_s)
            found += problems
        refused, reports = await self._reported(kernels, target)
        return [*found, *refused], reports

    async def _reported(self, kernels: Sequence[Kernel], target: str) -> tuple[list[Diagnostic], list[KernelReport]]:
        """Launches that would fail, and every kernel's report."""
        names = await demangled([kernel.symbol for kernel in kernels], self.work)
        started = launches(self.sources, self.known)
        refused: list[Diagnostic] = []
        reports: list[KernelReport] = []
        for kernel in kernels:
            name = short(names.get(kernel.symbol, kernel.symbol))
            own = [launch for launch in started if launch.kernel == base(name)]
            refused += amd.refused(kernel, name, target, own)
            reports.append(amd.report(kernel, name, target, _most_threads(own), _most_dynamic(own)))
        return refused, reports

    async def _linked(self, compiler: HipCompiler, target: str, stem: str, limit_s: float) -> list[Diagnostic]:
        """A device function that nobody defines is only seen here."""
        found: list[Diagnostic] = []
        if link := compiler.link(f"../tmp/{stem}.o", f"../{stem}.co"):
            # clang names a file twice where a source is called ./x, and its assembler then refuses the line table.
            text = _text(self.work / f"{stem}.s")
            (self.work / "tmp" / f"{stem}.s").write_text(
                re.sub(r"(?m)^\s+\.(?:loc|file)\s.*\n", "", text), encoding="utf-8"
            )
            found = await self._step(compiler.assemble(target, f"../tmp/{stem}.s", f"../tmp/{stem}.o"), target, limit_s)
            if not _errors(found):
                found += await self._step(link, target, limit_s)
        return [one.model_copy(update={"message": _undefined(one.message)}) for one in found]

    async def _step(self, command: list[str], target: str, limit_s: float) -> list[Diagnostic]:
        inside = name_inside(self.work)
        boxed, env = enclosed(command, self.work, "src"), environment(inside / "tmp")
        done = await process.run(boxed, cwd=self.work / "src", timeout_s=limit_s, env=env)
        log = done.output.replace(f"{inside}/src/", "").replace("../include/hip/", "hip/")
        if log.strip():
            self.log.append(f"[{target}]\n{log.rstrip()}")
        if done.returncode is None:
            return [Diagnostic(severity="error", message=f"{TIMEOUT}: stopped after {limit_s:g} s [{target}]")]
        found = diagnostics.parse(log)
        if done.returncode != 0:
            lines = [line for line in log.splitlines() if not _COUNT.match(line)]
            found = diagnostics.with_error(found, "\n".join(lines))
        return [one.model_copy(update={"message": f"{one.message} [{target}]"}) for one in found]


def _text(path: Path) -> str:
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(ASSEMBLY_BYTES)


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
