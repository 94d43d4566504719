"""The compilers of this machine that know AMD GPUs, and what each of them is asked. Starts nothing but `--version`.

ROCm's hipcc with its own header where it is; else the clang in PyPI's ziglang or the system's, with a header of ours.
"""

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from toolkits.core import process
from toolkits.core.compiler import environment
from toolkits.core.errors import ToolkitUnavailable

REMEDY = "pip install 'kernel-lab[hip]' (ziglang's clang), or ROCm, or for gfx942 alone `apt install clang-19 lld-19`"
HEADERS = Path(__file__).parent / "hip_include" / "hip"
_NEEDS = {"gfx90a": 13, "gfx942": 17, "gfx950": 20}
"""First major version of clang that knows a target."""
_DEVICE_ONLY = ("--cuda-device-only", "--no-gpu-bundle-output")
_WITHOUT_ROCM = ("-nogpulib", "-nogpuinc", "-fdeclspec", "-isystem", "../include")
_CLANGS = ("clang-22", "clang-21", "clang-20", "clang-19", "clang-18", "clang-17")


@dataclass(frozen=True)
class HipCompiler:
    """One clang that compiles for AMD GPUs."""

    program: str
    version: str
    """Whole first line, for people and for the cache."""
    major: int
    """Of its clang."""
    kind: str
    """hipcc, clang or zig."""

    def knows(self, target: str) -> bool:
        return self.major >= _NEEDS[target]

    def compile(self, target: str, flags: Sequence[str], unit: str, output: str) -> list[str]:
        """Source to assembly text, which is what reports are read from."""
        whole = [*flags, *_DEVICE_ONLY, f"--offload-arch={target}", "-S", "-o", output, unit]
        if self.kind == "hipcc":
            return [self.program, *whole]
        builtin = ["-isystem", str(Path(self.program).parent / "lib" / "include")] if self.kind == "zig" else []
        return [*self._clang(), "-x", "hip", *_WITHOUT_ROCM, *builtin, *whole]

    def assemble(self, target: str, assembly: str, output: str) -> list[str]:
        clang = [self.program] if self.kind == "hipcc" else self._clang()
        return [*clang, "-target", "amdgcn-amd-amdhsa", f"-mcpu={target}", "-c", "-o", output, assembly]

    def link(self, object_file: str, output: str) -> list[str]:
        """To the code object that a driver loads; empty: this machine lacks the linker."""
        linker = self._linker()
        return [*linker, "-shared", "--no-undefined", "-o", output, object_file] if linker else []

    def _clang(self) -> list[str]:
        return [self.program, "clang"] if self.kind == "zig" else [self.program]

    def _linker(self) -> list[str]:
        if self.kind == "zig":
            return [self.program, "ld.lld"]
        suffix = re.search(r"-\d+$", self.program)
        path = shutil.which(f"ld.lld{suffix[0] if suffix else ''}")
        return [path] if path else []


_known: dict[tuple[str, int], HipCompiler] = {}


async def compilers() -> list[HipCompiler]:
    """All that are here, the best first; each is asked once for its version."""
    found: list[HipCompiler] = []
    for kind, program in _programs():
        key = (program, Path(program).stat().st_mtime_ns)
        if key not in _known:
            _known[key] = await _asked(kind, program)
        found.append(_known[key])
    return found


def installed() -> bool:
    return bool(_programs())


async def compiler_for(target: str) -> HipCompiler:
    """The first that knows the target."""
    here = await compilers()
    chosen = next((compiler for compiler in here if compiler.knows(target)), None)
    if chosen:
        return chosen
    have = f"; here is {', '.join(compiler.version for compiler in here)}" if here else ""
    raise ToolkitUnavailable(
        f"no compiler for {target}: clang {_NEEDS[target]} or newer is needed{have}. Remedy: {REMEDY}"
    )


def _programs() -> list[tuple[str, str]]:
    rocm = Path(os.environ.get("ROCM_PATH", "/opt/rocm")) / "bin" / "hipcc"
    hipcc = str(rocm) if rocm.is_file() else shutil.which("hipcc")
    package = find_spec("ziglang")
    folders = package.submodule_search_locations if package else None
    zigs = [path for folder in folders or () if os.access(path := str(Path(folder) / "zig"), os.X_OK)]
    clangs = [path for name in _CLANGS if (path := shutil.which(name))]
    hipccs = [("hipcc", hipcc)] if hipcc else []
    return [*hipccs, *(("zig", path) for path in zigs), *(("clang", path) for path in clangs)]


async def _asked(kind: str, program: str) -> HipCompiler:
    command = [program, *(["clang"] if kind == "zig" else []), "--version"]
    done = await process.run(command, cwd=Path("/"), timeout_s=20, env=environment(Path("/tmp")))
    line = next((line.strip() for line in done.output.splitlines() if "clang version" in line), "")
    match = re.search(r"clang version (\d+)", line)
    return HipCompiler(program, f"{kind}: {line or 'unknown'}", int(match[1]) if match else 0, kind)
