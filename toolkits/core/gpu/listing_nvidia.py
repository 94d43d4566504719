"""What NVIDIA's driver says of its GPUs, through nvidia-ml-py. Runs in a child: a driver may hang, or die.

Standard library and pynvml alone; pynvml is imported only where the driver's library is. Gives plain dictionaries.
"""

# pynvml says nothing of its types
# pyright: reportMissingImports=false, reportMissingModuleSource=false
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import ctypes
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

Json = dict[str, Any]
LIBRARY = "libnvidia-ml.so.1"
NO_PACKAGE = "the NVIDIA driver is here, but not nvidia-ml-py, which asks it: pip install nvidia-ml-py"
DRIVER_NOT_LOADED, MISMATCH, NO_PERMISSION, LOST, RESET = 9, 18, 4, 15, 16
NOT_SUPPORTED = (3, 13, 25)
"""The question has no answer on this GPU, in this driver, or for now."""
REMEDIES = {
    NO_PERMISSION: "give this user read and write rights on /dev/nvidia*",
    DRIVER_NOT_LOADED: "load the kernel module (sudo modprobe nvidia); in a container pass the GPUs in (--gpus all)",
    LOST: "the GPU has fallen off the bus: reboot, and look for Xid messages in dmesg",
    RESET: "reset it when nobody uses it: nvidia-smi --gpu-reset -i INDEX",
    MISMATCH: "driver and library are of different versions: reboot, or reload the kernel module",
}
REASONS = {
    0x2: "clocks set by a user",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "thermal, by software",
    0x40: "thermal, by hardware",
    0x80: "power brake",
    0x100: "display clocks",
}
"""Bits of why clocks are low; that the GPU is idle is no throttling."""


def listed() -> list[Json]:
    """Every GPU; one entry with a problem where the driver answers nothing; nothing where there is no driver."""
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        return []
    try:
        nvml: Any = import_module("pynvml")
    except ImportError:
        return [_silent(NO_PACKAGE)]
    try:
        nvml.nvmlInit()
        count = nvml.nvmlDeviceGetCount()
    except nvml.NVMLError as error:
        return [_silent(_told(error))]
    return [_device(nvml, index) for index in range(count)]


def _silent(problem: str) -> Json:
    return {"name": "cuda", "kind": "cuda", "description": "NVIDIA driver", "problem": problem}


def _told(error: Any) -> str:
    remedy = REMEDIES.get(error.value, "nvidia-smi may tell more; else reinstall the driver")
    return f"the NVIDIA driver answers {str(error)!r}: {remedy}"


def _device(nvml: Any, index: int) -> Json:
    """What does not answer is left out; the first refusal that is no mere lack is the problem."""
    problems: list[str] = []

    def asked(question: Callable[[], Any]) -> Any:
        try:
            return question()
        except nvml.NVMLError as error:
            if error.value not in NOT_SUPPORTED:
                problems.append(_told(error))
            return None

    known: Json = {"name": f"cuda:{index}", "kind": "cuda", "description": "NVIDIA GPU"}
    handle = asked(lambda: nvml.nvmlDeviceGetHandleByIndex(index))
    if handle is not None:
        known |= _facts(nvml, handle, asked)
    return known | {"problem": problems[0] if problems else ""}


def _facts(nvml: Any, handle: Any, asked: Callable[[Callable[[], Any]], Any]) -> Json:
    version = asked(lambda: nvml.nvmlDeviceGetCudaComputeCapability(handle))
    memory = asked(lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
    reasons = asked(lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)) or 0
    power, limit = asked(lambda: nvml.nvmlDeviceGetPowerUsage(handle)), asked(lambda: _limit(nvml, handle))
    users = asked(lambda: nvml.nvmlDeviceGetComputeRunningProcesses(handle)) or []
    return {
        "description": _text(asked(lambda: nvml.nvmlDeviceGetName(handle))) or "NVIDIA GPU",
        "architecture": f"sm_{version[0]}{version[1]}" if version else "",
        "memory_gb": _gb(memory.total) if memory else None,
        "gpu": {
            "uuid": _text(asked(lambda: nvml.nvmlDeviceGetUUID(handle))),
            "clock_mhz": asked(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
            "clock_max_mhz": asked(lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_SM)),
            "memory_clock_mhz": asked(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM)),
            "memory_clock_max_mhz": asked(lambda: nvml.nvmlDeviceGetMaxClockInfo(handle, nvml.NVML_CLOCK_MEM)),
            "throttled": [name for bit, name in REASONS.items() if reasons & bit],
            "temperature_c": asked(lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
            "power_w": None if power is None else power / 1e3,
            "power_limit_w": None if limit is None else limit / 1e3,
            "memory_used_gb": _gb(memory.used) if memory else None,
            "users": [{"pid": one.pid, "name": name_of(one.pid), "memory_gb": _gb(one.usedGpuMemory)} for one in users],
        },
    }


def _limit(nvml: Any, handle: Any) -> int:
    return nvml.nvmlDeviceGetEnforcedPowerLimit(handle)


def _text(value: str | bytes | None) -> str:
    """Older versions of the package give bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value or ""


def _gb(number: int | None) -> float | None:
    return None if number is None else round(number / 1e9, 2)


def name_of(pid: int) -> str:
    """The program's name; empty for a process that is not seen from here."""
    try:
        return Path(f"/proc/{pid}/comm").read_text("utf-8", "replace").strip()
    except OSError:
        return ""
