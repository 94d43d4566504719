"""Profiles a CUDA or HIP solution: by the vendor's profiler on a device, else by what its compiler and numbers tell.

What was not measured is said to be an estimate, and what would measure it.
"""

from dataclasses import replace
from pathlib import Path
from shutil import rmtree, which

from toolkits.core import gpu_profile
from toolkits.core.errors import HarnessError
from toolkits.core.gpu import device_access, host_program
from toolkits.core.gpu.device_access import Gpu
from toolkits.core.profile_box import room
from toolkits.core.profile_child import child_environment, dump_arguments
from toolkits.core.profilers import roofline
from toolkits.core.schema import (
    CompileResult,
    KernelProfile,
    KernelReport,
    ProfileReport,
    Solution,
    Task,
    Workload,
)
from toolkits.core.signature import Dialect, size_of

TOOLS = {"cuda": gpu_profile.NCU, "hip": gpu_profile.ROCPROF}
VENDORS = {"cuda": "an NVIDIA GPU", "hip": "an AMD GPU"}
PACKAGES = {"cuda": "Nsight Compute (it comes with the CUDA toolkit)", "hip": "ROCm 6.2 or later"}
BOUND = "a function on tensors has no host program to profile: give the same kernel an entry on pointers"
HERE = "not profiled"
MOST_KERNELS = 6
_MATRIX = ("HMMA", "HGMMA", "UTCHMMA", "IMMA", "QGMMA", "v_mfma")


async def profile(
    task: Task,
    solution: Solution,
    dialect: Dialect,
    workload: Workload,
    build: CompileResult,
    builds: Path,
    folder: Path,
    limit_s: float,
) -> ProfileReport:
    """The device's figures where there is one; else one clear line with the remedy, and what is known without."""
    gpu = await device_access.first(dialect)
    if why := _lacking(solution, dialect, gpu):
        return estimated(task, solution, workload, build, why)
    assert gpu
    program = await host_program.built(task, solution, dialect, gpu.target, builds)
    return await measured(task, solution, workload, gpu, program, folder, limit_s)


def _lacking(solution: Solution, dialect: Dialect, gpu: Gpu | None) -> str:
    """Why nothing can be measured; empty: it can."""
    tool = TOOLS[dialect]
    if solution.binding:
        return BOUND
    if not gpu or gpu.stand_in:
        return (
            f"there is no {VENDORS[dialect].removeprefix('an ')} here: run this on a machine with one and"
            f" {PACKAGES[dialect]}, or record a report there ({tool}) and give its path to profile"
        )
    return "" if which(tool) else f"{gpu.name} is here, but not {tool}: install {PACKAGES[dialect]}"


async def measured(
    task: Task, solution: Solution, workload: Workload, gpu: Gpu, program: Path, folder: Path, limit_s: float
) -> ProfileReport:
    """What the profiler saw of a program that calls the solution, in a box that holds the device too."""
    arguments = await dump_arguments(task, workload, folder)
    visible, nodes = device_access.openings(gpu.name)
    try:
        with room(folder, [program, arguments, *map(Path, visible)]) as own:
            own = replace(own, nodes=nodes, address_space=False)  # a device's memory is mapped too
            command = [str(program), str(arguments)]
            report = await gpu_profile.profile(command, own.outside, folder, child_environment(folder), limit_s, own)
            if not report:
                raise HarnessError("the GPU profiler is gone from PATH")
            notes = ["the solution is called twice: the first call warms the device up", *report.notes, *own.notes()]
            return report.model_copy(update={"target": solution.id, "notes": notes})
    finally:
        rmtree(arguments)


def estimated(task: Task, solution: Solution, workload: Workload, build: CompileResult, why: str) -> ProfileReport:
    """What the compiler's report and the task's least work say of a kernel that did not run."""
    kernels = [_kernel(one) for one in build.kernels[:MOST_KERNELS]]
    targets = list(dict.fromkeys(one.target for one in build.kernels))
    return ProfileReport(
        tool="compiler",
        target=solution.id,
        architecture=" ".join(targets),
        kernels=kernels,
        verdict=f"SKIPPED, {HERE}: {why}. What follows is the compiler's report and an estimate, not a measurement",
        notes=[
            *filter(None, (_least_time(task, workload, target, build) for target in targets)),
            *(f"{one.target} {one.name}: {note}" for one in build.kernels for note in one.notes[:2]),
        ],
    )


def _kernel(report: KernelReport) -> KernelProfile:
    said = [
        f"{report.occupancy:.0%} of the warps fit at {report.threads} threads a block" if report.occupancy else "",
        f"limited by {report.occupancy_limit}" if report.occupancy_limit else "",
        f"spills {report.spill_stores_bytes} bytes" if report.spill_stores_bytes else "",
        f"spills {report.spilled_registers} registers" if report.spilled_registers else "",
    ]
    return KernelProfile(
        name=f"{report.name} {report.target}",
        launches=0,
        occupancy_possible=report.occupancy,
        occupancy_limits=[report.occupancy_limit] if report.occupancy_limit else [],
        registers=report.registers,
        accumulation_registers=report.accumulation_registers,
        scalar_registers=report.scalar_registers,
        shared_bytes=report.shared_bytes,
        scratch_bytes=report.stack_bytes,
        verdict=f"{HERE}; by the compiler {', '.join(filter(None, said)) or 'nothing stands out'}",
    )


def _least_time(task: Task, workload: Workload, target: str, build: CompileResult) -> str:
    """The task's least work on the roof of a well-known device of the architecture."""
    known = roofline.typical(target)
    if not task.work or not known:
        return ""
    model, peaks = known
    sizes = task.sizes(workload.axes)
    moved, operations = size_of(task.work.bytes, sizes), size_of(task.work.flops, sizes)
    matrix = any(kind.startswith(_MATRIX) for one in build.kernels if one.target == target for kind in one.instructions)
    precision = next((name for name in ("tensor16", "mfma16") if matrix and name in peaks.gflops), "fp32")
    by_memory, by_arithmetic = moved / peaks.gb_s / 1e3, operations / peaks.gflops[precision] / 1e3
    bound = "memory" if by_memory >= by_arithmetic else "compute"
    return (
        f"{target}, by the data sheet of {model}: at least {max(by_memory, by_arithmetic):.3g} us on {workload.uuid},"
        f" {bound} bound ({moved / 1e6:.3g} MB at {peaks.gb_s:.0f} GB/s, {operations / 1e9:.3g} GFLOP at"
        f" {peaks.gflops[precision] / 1e3:.0f} TFLOP/s {precision}); launches and latency come on top"
    )
