"""A small program around one CUDA or HIP solution that calls it on recorded arguments, for profilers of a GPU.

Knows no profiler. Built in a box, for the device that it is to run on.
"""

import shutil
from pathlib import Path, PurePosixPath

from toolkits.core import process
from toolkits.core.builds import content_key, find, keep, work_folder, write_sources
from toolkits.core.compiler import enclosed, environment, name_inside
from toolkits.core.errors import HarnessError, InvalidInput, ToolkitUnavailable
from toolkits.core.gpu import toolchain
from toolkits.core.schema import CompileResult, Solution, Task
from toolkits.core.signature import Dialect, device_call, device_header

DRIVER = Path(__file__).parents[1] / "profilers" / "gpu_driver.cpp"
FLAGS = ("-O3", "-std=c++20", "-I.")
UNITS = {"cuda": {".cu", ".cpp", ".cc", ".cxx"}, "hip": {".hip", ".cpp", ".cc", ".cxx"}}
BUILD_LIMIT_S = 180.0
PROGRAM, DRIVER_NAME = "program", "kernel_lab_driver.cpp"


async def built(task: Task, solution: Solution, dialect: Dialect, target: str, builds: Path) -> Path:
    """The program for a solution and a device, built once."""
    functions = solution.entry_function, solution.plan_function
    sources = {
        **solution.sources,
        "task.h": device_header(task, dialect, *functions),
        "call.h": device_call(task, *functions),
        DRIVER_NAME: DRIVER.read_text(encoding="utf-8"),
    }
    command = _command(solution, dialect, target)
    stamp = toolchain.stamp(command[0])
    folder = builds.resolve() / content_key("GPU host program", solution.id, sources["call.h"], command, stamp)
    if found := find(folder):
        assert found.artifact
        return found.artifact
    with work_folder(builds) as work:
        write_sources(work, sources)
        boxed = enclosed(command, work, ".")
        done = await process.run(boxed, cwd=work, timeout_s=BUILD_LIMIT_S, env=environment(name_inside(work)))
        if done.returncode != 0:
            raise InvalidInput(f"the solution does not build into a program to profile: {done.output.strip()[-700:]}")
        result = CompileResult(
            ok=True, solution=solution.id, toolkit=dialect, artifact=work / PROGRAM, command=command, log=done.output
        )
        kept = keep(work, folder, result).artifact
        if not kept:
            raise HarnessError("the program to profile was not kept")
        return kept


def _command(solution: Solution, dialect: Dialect, target: str) -> list[str]:
    units = sorted(name for name in solution.sources if PurePosixPath(name).suffix in UNITS[dialect])
    chosen = [f"-D{name}={value}" for name, value in solution.chosen().items()]
    rest = [*FLAGS, *solution.flags, *chosen, DRIVER_NAME, *units, "-o", PROGRAM]
    if dialect == "cuda":
        return [toolchain.needed("nvcc"), f"-arch={target}", "-x", "cu", "-lineinfo", *rest]
    hipcc = shutil.which("hipcc")
    if not hipcc:
        raise ToolkitUnavailable("a program for an AMD GPU needs hipcc: install ROCm's hip-dev")
    return [hipcc, f"--offload-arch={target}", "-gline-tables-only", *rest]
