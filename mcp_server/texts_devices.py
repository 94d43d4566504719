"""Devices, toolkits and profilers of a machine, as lines of text."""

from mcp_server.schema import DevicesAnswer
from toolkits.core.schema import Device, GpuState, Speeds


def device_lines(answer: DevicesAnswer) -> list[str]:
    """Every device with what is known of it; then what can be used here, and what is missing for the rest."""
    lines = [line for device in answer.devices for line in _device(device)]
    lines += [_part("toolkit", name, missing) for name, missing in answer.toolkits.items()]
    lines += [_part("profiler", name, missing) for name, missing in answer.profilers.items()]
    return lines


def _part(kind: str, name: str, missing: str) -> str:
    return f"{kind} {name}: {missing.removeprefix(f'{name}: ') or 'usable'}"


def _device(device: Device) -> list[str]:
    facts = [
        device.description,
        device.architecture,
        f"{device.cores} {'cores' if device.kind == 'cpu' else 'compute units'}" if device.cores else "",
        f"{device.memory_gb} GB" if device.memory_gb is not None else "",
        " ".join(device.features),
        "busy" if device.busy else "",
    ]
    return [
        f"{device.name} ({device.kind}): {', '.join(filter(None, facts))}",
        *(_gpu(device.gpu) if device.gpu else []),
        *(_speeds(device.speeds) if device.speeds else []),
        *([f"  problem: {device.problem}"] if device.problem else []),
    ]


def _gpu(gpu: GpuState) -> list[str]:
    clocks = [
        f"{name} {_of(now, most)} MHz"
        for name, now, most in (
            ("clock", gpu.clock_mhz, gpu.clock_max_mhz),
            ("memory clock", gpu.memory_clock_mhz, gpu.memory_clock_max_mhz),
        )
        if now is not None
    ]
    rest = [
        f"{gpu.memory_used_gb:g} GB used" if gpu.memory_used_gb is not None else "",
        f"{gpu.temperature_c:g} C" if gpu.temperature_c is not None else "",
        f"{_of(gpu.power_w, gpu.power_limit_w)} W" if gpu.power_w is not None else "",
        f"throttled: {', '.join(gpu.throttled)}" if gpu.throttled else "not throttled" if clocks else "",
    ]
    facts = [*clocks, *filter(None, rest)]
    users = [
        f"{one.pid}{f' {one.name}' if one.name else ''}{f' {one.memory_gb:g} GB' if one.memory_gb is not None else ''}"
        for one in gpu.users
    ]
    return [*([f"  {', '.join(facts)}"] if facts else []), *([f"  in use by {', '.join(users)}"] if users else [])]


def _of(now: float | None, most: float | None) -> str:
    return f"{now:.0f}" if most is None else f"{now:.0f} of {most:.0f}"


def _speeds(speeds: Speeds) -> list[str]:
    levels = ", ".join(f"{level.name} {level.gb_s:g} GB/s" for level in speeds.levels)
    return [
        f"  one core of {speeds.machine}, at most: {levels}; {speeds.gflops:g} GFLOP/s in float32,"
        f" {speeds.fastest_gflops:g} in its fastest format"
    ]
