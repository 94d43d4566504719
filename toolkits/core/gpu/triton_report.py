"""From what Triton compiled to kernel reports and to launches that cannot succeed. Knows no task, imports no triton.

AMD's assembly is read as it is; NVIDIA's cubins go through the disassembler that Triton brings.
"""

import base64
import re
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from toolkits.core import process
from toolkits.core.compiler import enclosed, environment, name_inside
from toolkits.core.gpu import amd, arch, ptxas, report, sass
from toolkits.core.gpu.amd_assembly import kernels as amd_kernels
from toolkits.core.gpu.launches import Launch
from toolkits.core.gpu.triton_answer import Tuned, Variant
from toolkits.core.schema import Diagnostic, KernelReport

MOST_DISASSEMBLED = 8
"""Kernels of which the machine code is read: a third of a second each."""
_STEP_LIMIT_S = 30.0
_USAGE = re.compile(r"REG:(?P<registers>\d+) STACK:(?P<stack>\d+)")
_RAISED = {"triton": "MaxDynamicSharedMemorySize"}
"""Triton asks for as much shared memory as its kernel needs, up to the architecture's limit."""


async def reports(variants: Sequence[Variant], tuned: Sequence[Tuned], work: Path) -> list[KernelReport]:
    """One report a kernel, target and configuration."""
    found: list[KernelReport] = []
    for number, variant in enumerate(variants):
        if variant.target in amd.AMD:
            found.append(_of_amd(variant))
        else:
            found.append(await _of_nvidia(variant, work, read_code=number < 2 * MOST_DISASSEMBLED))
    return [_with_configurations(one, variant, variants, tuned) for one, variant in zip(found, variants, strict=True)]


def failures(variants: Sequence[Variant]) -> list[Diagnostic]:
    """Launches that the target will refuse. One configuration of several that cannot run is skipped by the tuner."""
    return [
        Diagnostic(
            severity="warning" if variant.configuration else "error",
            message=f"launch of {_name(variant)} would fail: {why} [{variant.target}]",
            file=variant.file,
            line=variant.line,
        )
        for variant in variants
        for why in _too_much(variant)
    ]


def _too_much(variant: Variant) -> list[str]:
    amds, nvidias = amd.AMD.get(variant.target), arch.architecture(variant.target)
    most = amds.lds_bytes if amds else nvidias.block_shared_bytes if nvidias else None
    threads = variant.warps * (amd.WAVE if amds else arch.WARP)
    found = [f"{threads} threads a block, at most 1024 are possible"] if threads > amd.BLOCK_THREADS else []
    if most is not None and variant.shared_bytes > most:
        found.append(
            f"it needs {variant.shared_bytes} bytes of shared memory and a block has at most {most}: use smaller tiles"
            " or fewer stages"
        )
    return found


def _name(variant: Variant) -> str:
    return f"{variant.kernel} [{variant.configuration}]" if variant.configuration else variant.kernel


def _of_amd(variant: Variant) -> KernelReport:
    (kernel, *_) = amd_kernels(variant.assembly)
    threads = variant.warps * amd.WAVE
    return amd.report(kernel, _name(variant), variant.target, threads, variant.shared_bytes)


async def _of_nvidia(variant: Variant, work: Path, *, read_code: bool) -> KernelReport:
    image = work / "kernel.cubin"
    image.write_bytes(base64.b64decode(variant.image))
    said = await _tool("cuobjdump", work, "-res-usage", image.name)
    usage = _USAGE.search(said)
    has = ptxas.Resources(variant.kernel, variant.target)
    if usage:
        has = replace(has, registers=int(usage["registers"]), stack_bytes=int(usage["stack"]))
        has = replace(has, spill_stores_bytes=0, spill_loads_bytes=0) if not has.stack_bytes else has
    if has.stack_bytes:
        has = await _with_spills(has, variant, work)
    code = sass.functions(await _tool("nvdisasm", work, "-g", "-c", image.name)) if read_code else {}
    kernel = report.Kernel(_name(variant), has, code=next(iter(code.values()), list[sass.Instruction]()))
    launch = Launch(variant.kernel, variant.file, variant.line, variant.warps * arch.WARP, variant.shared_bytes)
    return report.report(kernel, [launch])


async def _with_spills(has: ptxas.Resources, variant: Variant, work: Path) -> ptxas.Resources:
    """The cubin tells the size of the stack; only the assembler says how much of it is spills."""
    (work / "kernel.ptx").write_text(variant.assembly, encoding="utf-8")
    name = re.search(r"^\.target (\w+)", variant.assembly, re.MULTILINE)
    said = await _tool(
        "ptxas-blackwell", work, "-v", f"--gpu-name={name[1] if name else ''}", "kernel.ptx", "-o", "x.o"
    )
    counted = next(iter(ptxas.resources(said)), None)
    if not counted:
        return has
    return replace(has, spill_stores_bytes=counted.spill_stores_bytes, spill_loads_bytes=counted.spill_loads_bytes)


async def _tool(name: str, work: Path, *arguments: str) -> str:
    """What a program of Triton's own says; empty: it is not there, or has nothing to say."""
    package = find_spec("triton")
    folders = [Path(folder) for folder in (package.submodule_search_locations if package else None) or ()]
    programs = [path for folder in folders if (path := folder / "backends" / "nvidia" / "bin" / name).is_file()]
    if not programs:
        return ""
    command = enclosed([str(programs[0]), *arguments], work, ".")
    env = environment(name_inside(work))
    done = await process.run(command, cwd=work, timeout_s=_STEP_LIMIT_S, env=env, keep=20_000_000)
    return done.output


def _with_configurations(
    one: KernelReport, variant: Variant, variants: Sequence[Variant], tuned: Sequence[Tuned]
) -> KernelReport:
    listed = [one for each in tuned if each.kernel == variant.kernel for one in each.configurations]
    if not listed:
        return one
    shown = "; ".join(listed[:8]) + (f"; and {len(listed) - 8} more" if len(listed) > 8 else "")
    done = sum((each.kernel, each.target) == (variant.kernel, variant.target) for each in variants)
    compiled = f"of which {done} {'was' if done == 1 else 'were'} compiled here"
    note = f"tuned over {len(listed)} configurations, {compiled}: {shown}"
    return one.model_copy(update={"notes": [*one.notes, note]})
