"""Builds the stand-in for a GPU driver, and solutions that run on it. Only for dry runs and tests: nothing is a GPU's.

The sources are ours and trusted, so no box is around the compiler here.
"""

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from toolkits.core import process
from toolkits.core.builds import write_sources
from toolkits.core.compiler import Compiler
from toolkits.core.errors import ToolkitUnavailable
from toolkits.core.gpu.device_names import LIBRARY_VARIABLE

STAND_IN = Path(__file__).parent / "stand_in"
NAME = "libkernel_lab_stand_in.so"
LIMIT_S = 120.0


async def built_driver(folder: Path) -> Path:
    """The driver's library."""
    library = folder / NAME
    flags = ["-std=c++20", "-O2", "-shared", "-fPIC", "-fvisibility=hidden", f"-Wl,-soname,{NAME}"]
    await _compiled([*flags, str(STAND_IN / "driver.cpp"), "-o", str(library), "-ldl", "-lpthread"], folder)
    folder.chmod(0o755)  # a worker may be another user
    return library


async def built_module(module: Path) -> Path:
    """The kernel that does nothing, as the stand-in loads it."""
    await _compiled(["-shared", "-fPIC", str(STAND_IN / "nothing.cpp"), "-o", str(module)], module.parent)
    return module


async def built_solution(folder: Path, driver: Path, sources: Mapping[str, str], unit: str) -> Path:
    """CUDA sources whose kernels have neither barriers nor shared memory, as a library on the stand-in."""
    write_sources(folder / "src", sources)
    library = folder / "solution.so"
    flags = ["-std=c++20", "-O2", "-march=native", "-shared", "-fPIC", "-x", "c++", f"-I{folder / 'src'}"]
    given = [*flags, f"-I{STAND_IN}", "-include", "cmath", str(folder / "src" / unit), "-x", "none", str(driver)]
    await _compiled([*given, "-o", str(library), "-ldl", "-lpthread"], folder)
    return library


async def _compiled(arguments: list[str], folder: Path) -> None:
    done = await process.run([Compiler().path(), *arguments], cwd=folder, timeout_s=LIMIT_S)
    if done.returncode != 0:
        raise ToolkitUnavailable(f"the stand-in does not build: {done.output[-2000:]}")


@contextmanager
def in_use(driver: Path) -> Generator[None]:
    """While it lasts, this driver is the only one that is asked, for either vendor."""
    before = {name: os.environ.get(name) for name in LIBRARY_VARIABLE.values()}
    os.environ.update(dict.fromkeys(before, str(driver)))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
