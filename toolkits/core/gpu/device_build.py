"""A CUDA or HIP solution as a library for a device that is here: kernels and host functions, as its own compiler says.

Knows no cache, no judge and no way to load what it builds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from toolkits.core import diagnostics, process
from toolkits.core.builds import write_sources
from toolkits.core.compiler import enclosed, environment, name_inside
from toolkits.core.gpu import messages
from toolkits.core.gpu.device_access import Gpu
from toolkits.core.schema import CompileResult, Diagnostic
from toolkits.core.signature import Dialect

LIBRARY, FOLDER = "device.so", "device"
STATUS_UNIT = {"cuda": "kernel_lab_status.cu", "hip": "kernel_lab_status.hip"}
_RUNTIME = {"cuda": "cuda_runtime.h", "hip": "hip/hip_runtime.h"}
# Without it a launch that was refused would only be seen by the output that is missing.
_STATUS = """#include <{runtime}>
extern "C" __attribute__((visibility("default"))) const char* kernel_lab_last_error() {{
    const {api}Error_t error = {api}GetLastError();
    return error == {api}Success ? nullptr : {api}GetErrorString(error);
}}
"""


@dataclass(frozen=True)
class Built:
    """A library, or the compiler's errors."""

    library: Path | None
    log: str
    diagnostics: list[Diagnostic] = field(default_factory=list[Diagnostic])


async def device_library(
    work: Path,
    sources: Mapping[str, str],
    units: Sequence[str],
    compiler: Sequence[str],
    gpu: Gpu,
    limit_s: float,
) -> Built:
    """Build in `work`, which keeps the library alone; `compiler` is its name and flags, sources include `task.h`."""
    dialect: Dialect = "cuda" if gpu.name.startswith("cuda") else "hip"
    folder = work / FOLDER
    status = _STATUS.format(runtime=_RUNTIME[dialect], api=dialect)
    write_sources(folder / "src", {**sources, STATUS_UNIT[dialect]: status})
    (folder / "tmp").mkdir()
    inside = name_inside(folder)
    command = [
        *(*compiler, *_target(dialect, gpu), "-shared", "-I."),
        *(f"./{unit}" for unit in (*units, STATUS_UNIT[dialect])),
        *("-o", f"{inside}/{LIBRARY}"),
    ]
    boxed, env = enclosed(command, folder, "src"), environment(inside / "tmp")
    done = await process.run(boxed, cwd=folder / "src", timeout_s=limit_s, env=env)
    log = done.output.replace(f"{inside}/src/", "").replace("./", "")
    if done.returncode == 0:
        return Built((folder / LIBRARY).rename(work / LIBRARY), log)
    said = messages.parse(log, gpu.target, {}, {}) if dialect == "cuda" else diagnostics.parse(log)
    found = diagnostics.with_error(said, log)
    if done.returncode is None:
        found = [Diagnostic(severity="error", message=f"compile_timeout: stopped after {limit_s:g} s"), *found]
    return Built(None, log, found)


def _target(dialect: Dialect, gpu: Gpu) -> list[str]:
    if dialect == "cuda":
        number = gpu.target.removeprefix("sm_")
        return [f"-gencode=arch=compute_{number},code=sm_{number}", "-Xcompiler", "-fPIC"]
    return [f"--offload-arch={gpu.architecture}", "-fPIC"]


def stamp(gpu: Gpu | None) -> str:
    """What of a device decides what a build gives; empty: there is none."""
    return f"{gpu.name} {gpu.target} {gpu.stand_in}" if gpu else ""


def runs_on(gpu: Gpu | None, result: CompileResult) -> CompileResult:
    """What runs emulated, on a stand-in as if that were a device; elsewhere as it is."""
    if not gpu or not result.artifact:
        return result
    return result.model_copy(update={"device": gpu.name, "not_timed": ""})


def with_library(gpu: Gpu, result: CompileResult, built: Built) -> CompileResult:
    """A compiled solution with what runs on the device; what does not link there does not build."""
    found = [*built.diagnostics, *result.diagnostics][: diagnostics.MOST]
    log = "\n".join(filter(None, (result.log, built.log and f"== for {gpu.name} ({gpu.model})\n{built.log}")))
    more = {"artifact": built.library, "device": gpu.name, "not_timed": "", "diagnostics": found, "log": log}
    return result.model_copy(update=more | {"ok": built.library is not None})
