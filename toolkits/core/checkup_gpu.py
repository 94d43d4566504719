"""What this machine has for kernels of GPUs: devices, compilers, profilers. Loads no driver, starts no kernel.

Nothing of it is needed: without a GPU kernels are compiled, reported on and emulated.
"""

from pathlib import Path
from typing import get_args

from toolkits.core import bindings, gpus, profiling
from toolkits.core.gpu import hip_compilers, toolchain
from toolkits.core.protections import Check
from toolkits.core.schema import BindingName, Device

NO_GPU = "no driver: kernels are compiled, reported on, emulated"
PROFILERS = ("ncu", "rocprofv3", "ncu-report")


async def checks() -> list[Check]:
    """Devices, compilers, profilers and bindings, a line each where all is well; what is missing with its command."""
    devices = [_device(one) for one in await gpus.listed()]
    found, missing = await _compilers(), profiling.profilers()
    here = [name for name in PROFILERS if not missing[name]]
    wanted = PROFILERS if devices else ("ncu-report",)  # without a GPU the others have nothing to do
    bound = {name: bindings.missing(name) for name in get_args(BindingName)}
    return [
        *(devices or [Check(area="gpu", name="devices", state="ok", seen=NO_GPU)]),
        *_parts("compilers", [seen for seen, _ in found], [remedy for seen, remedy in found if not seen]),
        *_parts("profilers", here, [missing[name] for name in wanted if missing[name]]),
        *_parts("bindings", [name for name in bound if not bound[name]], list(filter(None, bound.values()))),
    ]


def _device(one: Device) -> Check:
    seen = " ".join(filter(None, (one.description, one.architecture)))
    throttled = f", throttled: {', '.join(one.gpu.throttled)}" if one.gpu and one.gpu.throttled else ""
    if one.problem:
        return Check(area="gpu", name=one.name, state="note", seen=seen, remedy=one.problem)
    busy = f", used by {len(one.gpu.users)} processes" if one.gpu and one.gpu.users else ""
    return Check(area="gpu", name=one.name, state="ok", seen=f"{seen}{throttled}{busy}")


async def _compilers() -> list[tuple[str, str]]:
    """What is here, and what to do where it is not."""
    hip = [f"{Path(one.program).name} (clang {one.major})" for one in await hip_compilers.compilers()]
    return [
        ("nvcc" if toolchain.program("nvcc") else "", f"nvcc: {toolchain.REMEDIES['nvcc']}"),
        ("NVRTC" if toolchain.nvrtc() else "", f"NVRTC: {toolchain.REMEDIES['libnvrtc']}"),
        ("nvdisasm" if toolchain.program("nvdisasm") else "", f"nvdisasm: {toolchain.REMEDIES['nvdisasm']}"),
        (" ".join(hip), f"a HIP compiler: {hip_compilers.REMEDY}"),
    ]


def _parts(name: str, here: list[str], remedies: list[str]) -> list[Check]:
    """One line for what is here, and one for each that is not: `what: how to get it`."""
    there = ", ".join(filter(None, here))
    lines = [Check(area="gpu", name=name, state="ok", seen=there)] if there else []
    lacking = [remedy.partition(": ") for remedy in remedies]
    return lines + [
        Check(area="gpu", name=name, state="note", seen=f"no {what}", remedy=how) for what, _, how in lacking
    ]
