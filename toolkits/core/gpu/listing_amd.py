"""What AMD's driver says of its GPUs, through amdsmi. Runs in a child: a driver may hang, or die.

Standard library and amdsmi alone. Without the driver's library its import prints, and fails: it is looked for before.
"""

# amdsmi's types are partial
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false

import ctypes
import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

from toolkits.core.gpu.listing_nvidia import name_of

Json = dict[str, Any]
LIBRARY = "libamd_smi.so"
NO_PACKAGE = "AMD's driver is here, but not amdsmi, which asks it: pip install amdsmi, of the version of ROCm"
NOT_SUPPORTED = (2, 3, 30, 40, 55)
"""The question has no answer on this GPU, or none yet."""
REMEDIES = {
    10: "give this user the groups render and video: sudo usermod -aG render,video USER",
    31: "load the kernel module (sudo modprobe amdgpu); a container needs /dev/kfd and /dev/dri passed in",
    34: "load the kernel module (sudo modprobe amdgpu); a container needs /dev/kfd and /dev/dri passed in",
}
THROTTLES = {
    "active_prochot_thrm": "processor hot",
    "active_ppt_pwr": "power cap",
    "active_socket_thrm": "thermal, socket",
    "active_vr_thrm": "thermal, voltage regulators",
    "active_hbm_thrm": "thermal, memory",
}


def listed() -> list[Json]:
    """Every GPU; one entry with a problem where the driver answers nothing; nothing where there is no driver."""
    if not _has_library():
        return []
    try:
        smi: Any = import_module("amdsmi")
    except (ImportError, KeyError, OSError, AttributeError):  # a library of another version lacks functions
        return [_silent(NO_PACKAGE)]
    try:
        smi.amdsmi_init()
        handles = smi.amdsmi_get_processor_handles()
    except smi.AmdSmiException as error:
        return [_silent(_told(error))]
    return [_device(smi, index, handle) for index, handle in enumerate(handles)]


def _has_library() -> bool:
    for path in (f"{os.environ.get('ROCM_PATH', '/opt/rocm')}/lib/{LIBRARY}", LIBRARY):
        try:
            ctypes.CDLL(path)
        except OSError:
            continue
        return True
    return False


def _silent(problem: str) -> Json:
    return {"name": "hip", "kind": "hip", "description": "AMD driver", "problem": problem}


def _told(error: Any) -> str:
    code = getattr(error, "err_code", 0)
    words = " ".join(str(error).split())
    return f"AMD's driver answers {words!r}: {REMEDIES.get(code, 'amd-smi may tell more; else reinstall the driver')}"


def _device(smi: Any, index: int, handle: Any) -> Json:
    """What does not answer is left out; the first refusal that is no mere lack is the problem."""
    problems: list[str] = []

    def asked(question: Callable[[], Any]) -> Any:
        try:
            return question()
        except smi.AmdSmiException as error:
            if getattr(error, "err_code", 0) not in NOT_SUPPORTED:
                problems.append(_told(error))
            return None

    known = {"name": f"hip:{index}", "kind": "hip"} | _facts(smi, handle, asked)
    return known | {"problem": problems[0] if problems else ""}


def _facts(smi: Any, handle: Any, asked: Callable[[Callable[[], Any]], Any]) -> Json:
    chip: Json = asked(lambda: smi.amdsmi_get_gpu_asic_info(handle)) or {}
    memory: Json = asked(lambda: smi.amdsmi_get_gpu_vram_usage(handle)) or {}
    clock: Json = asked(lambda: smi.amdsmi_get_clock_info(handle, smi.AmdSmiClkType.GFX)) or {}
    memory_clock: Json = asked(lambda: smi.amdsmi_get_clock_info(handle, smi.AmdSmiClkType.MEM)) or {}
    power: Json = asked(lambda: smi.amdsmi_get_power_info(handle)) or {}
    limit: Json = asked(lambda: smi.amdsmi_get_power_cap_info(handle)) or {}
    hot: Json = asked(lambda: smi.amdsmi_get_violation_status(handle)) or {}
    users: list[Json] = asked(lambda: smi.amdsmi_get_gpu_process_list(handle)) or []
    kind, now = smi.AmdSmiTemperatureType.HOTSPOT, smi.AmdSmiTemperatureMetric.CURRENT
    return {
        "description": chip.get("market_name", "AMD GPU"),
        "architecture": chip.get("target_graphics_version", ""),
        "cores": _number(chip.get("num_compute_units")),
        "memory_gb": _gb(memory.get("vram_total"), 1 << 20),
        "gpu": {
            "uuid": asked(lambda: smi.amdsmi_get_gpu_device_uuid(handle)) or "",
            "clock_mhz": _number(clock.get("clk")),
            "clock_max_mhz": _number(clock.get("max_clk")),
            "memory_clock_mhz": _number(memory_clock.get("clk")),
            "memory_clock_max_mhz": _number(memory_clock.get("max_clk")),
            "throttled": [name for key, name in THROTTLES.items() if hot.get(key) is True],
            "temperature_c": _number(asked(lambda: smi.amdsmi_get_temp_metric(handle, kind, now))),
            "power_w": _power(power),
            "power_limit_w": _watts(_number(limit.get("power_cap"))),
            "memory_used_gb": _gb(memory.get("vram_used"), 1 << 20),
            "users": [_user(one) for one in users],
        },
    }


def _user(one: Json) -> Json:
    name = name_of(one["pid"]) or ("" if one["name"] == "N/A" else one["name"])
    return {"pid": one["pid"], "name": name, "memory_gb": _gb(one["memory_usage"]["vram_mem"])}


def _power(power: Json) -> float | None:
    """Which of the three a chip knows depends on its generation."""
    keys = ("socket_power", "current_socket_power", "average_socket_power")
    return next((value for key in keys if (value := _number(power.get(key)))), None)


def _watts(number: float | None) -> float | None:
    """Microwatts in most versions."""
    return number / 1e6 if number and number > 1e5 else number


def _number(value: Any) -> Any:
    """`N/A` stands where there is none."""
    return value if isinstance(value, (int, float)) else None


def _gb(value: Any, unit: int = 1) -> float | None:
    number = _number(value)
    return None if number is None else round(number * unit / 1e9, 2)
