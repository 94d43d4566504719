"""Runs nvcc, NVRTC and nvdisasm in a box, a target each. Knows no task; what their output means is read elsewhere."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from toolkits.core import process, sandbox
from toolkits.core.compiler import enclosed, environment, limits, name_inside
from toolkits.core.gpu import nvrtc_child, toolchain

SOURCES, SCRATCH = "src", "tmp"
_KEPT_BYTES = 4_000_000
"""Of each end of a disassembly: kernels of a hundred thousand instructions are whole."""
_DISASSEMBLY_LIMIT_S = 60.0


@dataclass(frozen=True)
class Compiled:
    """What compiling one file for one target left."""

    target: str
    unit: str
    command: list[str]
    returncode: int | None
    """None: stopped at the time limit."""
    log: str
    """With the solution's own file names."""
    cubin: Path
    ptx: dict[str, str] = field(default_factory=dict[str, str])
    """Assembler text by name, kept where assembling failed."""

    @property
    def ok(self) -> bool:
        return self.returncode == 0 and self.cubin.is_file()


async def version(nvcc: str) -> str:
    """Such as `nvcc 13.0 (V13.0.88)`."""
    done = await process.run([nvcc, "--version"], cwd=Path("/"), timeout_s=20, env=environment(Path("/tmp")))
    release = next((line for line in done.output.splitlines() if "release" in line), done.output[:80])
    return f"nvcc {release.partition('release ')[2] or release}"


async def compiled(
    work: Path, unit: str, target: str, flags: Sequence[str], limit_s: float, visible: Sequence[str] = ()
) -> Compiled:
    """One file of `work`/src as a cubin with line numbers and ptxas' report; `visible` holds headers of others."""
    cubin = _image(work, unit, target)
    scratch = work / SCRATCH / cubin.stem
    scratch.mkdir(parents=True)
    inside = name_inside(work)
    there = f"{inside}/{SCRATCH}/{scratch.name}"
    command = [
        *(toolchain.needed("nvcc"), f"-arch={target}", "-cubin", *flags, "-lineinfo", "-Xptxas", "-v", "-I."),
        *("--keep", "--keep-dir", there, f"./{unit}", "-o", f"{inside}/{cubin.name}"),
    ]
    boxed = enclosed(command, work, SOURCES, visible)
    done = await process.run(boxed, cwd=work / SOURCES, timeout_s=limit_s, env=environment(Path(there)))
    log = _own_names(done.output, work, there)
    ptx: dict[str, str] = {}
    if done.returncode:
        ptx = {file.name: _own_names(file.read_text("utf-8", "replace"), work, there) for file in scratch.glob("*.ptx")}
    return Compiled(target, unit, command, done.returncode, log, cubin, ptx)


async def compiled_at_run_time(work: Path, unit: str, target: str, flags: Sequence[str], limit_s: float) -> Compiled:
    """The same by NVRTC, ten times faster: for files without host code."""
    library = toolchain.nvrtc()
    assert library
    folders = toolchain.includes()
    cubin = _image(work, unit, target)
    inside = name_inside(work)
    options = [f"-arch={target}", *flags, "-lineinfo", "--ptxas-options=-v", "-I.", *(f"-I{one}" for one in folders)]
    script = str(Path(nvrtc_child.__file__).resolve())
    python = str(Path(sys.executable).resolve())
    output = f"{inside}/{cubin.name}"
    command = [python, "-I", "-S", script, str(library), f"./{unit}", output, *options]
    visible = [*sandbox.installation(python), script, str(library.resolve().parent), *map(str, folders)]
    bwrap = sandbox.mechanism().bwrap
    boxed = [*limits(), *command]
    if bwrap:
        writable = {str(work): str(inside)}
        boxed = [
            *limits(),
            *sandbox.enclosed(bwrap, command, visible=_outside_system(visible), writable=writable, cwd=f"{inside}/src"),
        ]
    done = await process.run(boxed, cwd=work / SOURCES, timeout_s=limit_s, env=environment(inside / SCRATCH))
    shown = ["nvrtc", *options, f"./{unit}"]
    return Compiled(target, unit, shown, done.returncode, _own_names(done.output, work, ""), cubin)


def _image(work: Path, unit: str, target: str) -> Path:
    return work / f"{unit.removesuffix('.cu').replace('/', '-')}.{target}.cubin"


async def disassembled(work: Path, cubin: Path, *arguments: str) -> str:
    """Machine code as text; empty where this machine has no nvdisasm or it does not know the code."""
    nvdisasm = toolchain.program("nvdisasm")
    if not nvdisasm:
        return ""
    command = enclosed([nvdisasm, *arguments, f"./{cubin.name}"], cubin.parent, ".")
    inside = name_inside(cubin.parent)
    done = await process.run(
        command, cwd=cubin.parent, timeout_s=_DISASSEMBLY_LIMIT_S, env=environment(inside), keep=_KEPT_BYTES
    )
    return _own_names(done.output, work, "") if done.returncode == 0 else ""


def _outside_system(paths: Sequence[str]) -> list[str]:
    known = [path for path in paths if not any(Path(path).is_relative_to(seen) for seen in sandbox.SYSTEM)]
    return list(dict.fromkeys(known))


def _own_names(text: str, work: Path, scratch: str) -> str:
    """File names as the solution has them."""
    inside = name_inside(work)
    for folder in filter(None, (scratch, f"{inside}/{SOURCES}", f"{work}/{SOURCES}", f"{inside}/{SCRATCH}")):
        text = text.replace(f"{folder}/./", "").replace(f"{folder}/", "")
    return text
