"""What the vendors' drivers call the same things: functions, attributes, libraries. Loads nothing and calls nothing.

From `cuda.h` of CUDA 13 and `hip_runtime_api.h` of ROCm 7; both keep these names for every program ever built.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Names:
    """One vendor's driver."""

    api: str
    """cuda or hip, as toolkits and devices are called."""
    libraries: tuple[str, ...]
    """Names of the shared library, the usual one first."""
    nodes: tuple[str, ...]
    """Device files that a process needs, as patterns under /dev."""
    functions: Mapping[str, str]
    """Our word for a step -> the exported function."""
    attributes: Mapping[str, int]
    """What `attribute` can be asked."""


_SAME_IN_BOTH = {
    "init": "Init",
    "count": "DeviceGetCount",
    "name": "DeviceGetName",
    "total": "DeviceTotalMem",
    "attribute": "DeviceGetAttribute",
    "free_memory": "MemGetInfo",
    "record": "EventRecord",
    "to_device": "MemcpyHtoD",
    "to_host": "MemcpyDtoH",
    "copy": "MemcpyDtoDAsync",
    "fill": "MemsetD8Async",
    "stream": "StreamCreate",
    "end_stream": "StreamDestroy",
    "event": "EventCreate",
    "end_event": "EventDestroy",
    "elapsed": "EventElapsedTime",
    "begin_capture": "StreamBeginCapture",
    "end_capture": "StreamEndCapture",
    "instantiate": "GraphInstantiateWithFlags",
    "launch_graph": "GraphLaunch",
    "end_graph": "GraphDestroy",
    "end_executable": "GraphExecDestroy",
    "load": "ModuleLoadData",
    "unload": "ModuleUnload",
    "function": "ModuleGetFunction",
    "launch": "LaunchKernel",
    "error": "GetErrorName",
}
_LATER_CUDA = (
    *("total", "free_memory", "to_device", "to_host", "copy", "end_stream", "end_event"),
    "begin_capture",
)
"""Those whose first version only programs of 2010 use."""

CUDA = Names(
    api="cuda",
    libraries=(
        "libcuda.so.1",
        "/usr/lib/wsl/lib/libcuda.so.1",
        "/usr/local/nvidia/lib64/libcuda.so.1",
        "/run/opengl-driver/lib/libcuda.so.1",
    ),
    nodes=("nvidia*", "dxg"),
    functions={
        **{step: f"cu{name}{'_v2' if step in _LATER_CUDA else ''}" for step, name in _SAME_IN_BOTH.items()},
        "allocate": "cuMemAlloc_v2",
        "release": "cuMemFree_v2",
        "synchronize": "cuCtxSynchronize",
        "device": "cuDeviceGet",
        "retain": "cuDevicePrimaryCtxRetain",
        "current": "cuCtxSetCurrent",
        "forget_l2": "cuCtxResetPersistingL2Cache",
    },
    attributes={"clock_khz": 13, "multiprocessors": 16, "l2_bytes": 38, "major": 75, "minor": 76},
)
HIP = Names(
    api="hip",
    libraries=("libamdhip64.so", "/opt/rocm/lib/libamdhip64.so"),
    nodes=("kfd", "dri/render*"),
    functions={
        **{step: f"hip{name}" for step, name in _SAME_IN_BOTH.items()},
        "allocate": "hipMalloc",
        "release": "hipFree",
        "synchronize": "hipDeviceSynchronize",
        "count": "hipGetDeviceCount",
        "current": "hipSetDevice",
        "launch": "hipModuleLaunchKernel",
        "stream": "hipStreamCreateWithFlags",
        "event": "hipEventCreateWithFlags",
        "properties": "hipGetDevicePropertiesR0600",
    },
    attributes={"clock_khz": 5, "multiprocessors": 63, "l2_bytes": 19, "major": 23, "minor": 61},
)
APIS = {names.api: names for names in (CUDA, HIP)}
LIBRARY_VARIABLE = {"cuda": "KERNEL_LAB_LIBCUDA", "hip": "KERNEL_LAB_LIBHIP"}
"""Environment variable that names another library: a driver in an odd place, or a stand-in for one."""
VISIBLE = {
    "cuda": ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"),
    "hip": ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"),
}
"""Variables by which a driver numbers devices: whoever asks it must have the same."""
STAND_IN = "kernel-lab stand-in"
"""How the name of a device begins that is no device: its memory is the host's, and its figures mean nothing."""
