"""Where CUDA's compilers and disassembler lie: the machine's own, else those of pip's packages. Starts nothing."""

import os
import re
import shutil
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from toolkits.core.errors import ToolkitUnavailable

_MACHINE = "/usr/local/cuda"
_NVRTC = re.compile(r"libnvrtc\.so\.\d+")
REMEDIES = {
    "nvcc": "pip install 'kernel-lab[cuda]' (or nvidia-cuda-nvcc nvidia-cuda-cccl), or install the CUDA toolkit",
    "nvdisasm": "pip install nvidia-cuda-nvdisasm",
    "libnvrtc": "pip install nvidia-cuda-nvrtc",
}


def program(name: str) -> str:
    """Full path of nvcc, nvdisasm ...; empty: this machine has none."""
    homes = [Path(home) for variable in ("CUDA_HOME", "CUDA_PATH") if (home := os.environ.get(variable))]
    places = [str(home / "bin") for home in homes] + [os.environ.get("PATH", os.defpath), f"{_MACHINE}/bin"]
    found = shutil.which(name, path=os.pathsep.join([*places, *(str(home / "bin") for home in _packages())]))
    return found or ""


def needed(name: str) -> str:
    """The same of a program without which nothing goes on."""
    path = program(name)
    if not path:
        raise ToolkitUnavailable(f"this machine lacks {name}: {REMEDIES[name]}")
    return path


def nvrtc() -> Path | None:
    """The run-time compiler's library; the newest where there are several."""
    folders = [*(home / "lib" for home in _packages()), Path(_MACHINE) / "lib64"]
    found = [file for folder in folders if folder.is_dir() for file in folder.iterdir() if _NVRTC.fullmatch(file.name)]
    return max(found, key=lambda file: int(file.name.rpartition(".")[2]), default=None)


def includes() -> list[Path]:
    """Folders with CUDA's own headers, for a compiler that does not know them: NVRTC."""
    nvcc = program("nvcc")
    # What is called nvcc may be a script elsewhere that starts the real one.
    homes = [*([Path(nvcc).resolve().parent.parent] if nvcc else []), Path(_MACHINE), *_packages()]
    found = [home / "include" for home in homes if (home / "include" / "cuda_fp16.h").is_file()][:1]
    return [*found, *(folder / "cccl" for folder in found if (folder / "cccl").is_dir())]


def stamp(path: str | Path | None) -> str:
    """What tells one installation of a program from another, without starting it."""
    if not path:
        return ""
    file = Path(path).resolve()
    seen = file.stat()
    return f"{file} {seen.st_size} {seen.st_mtime_ns}"


@cache
def _packages() -> tuple[Path, ...]:
    """`nvidia/cu13` and the like in site-packages, newest first."""
    package = find_spec("nvidia")
    folders = [Path(folder) for folder in (package.submodule_search_locations if package else None) or ()]
    return tuple(sorted((home for folder in folders for home in folder.glob("cu[0-9][0-9]")), reverse=True))
