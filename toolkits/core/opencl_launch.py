"""How an OpenCL solution's kernels are launched on a task, and which launches cannot succeed. Knows no OpenCL."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from toolkits.core.errors import InvalidInput
from toolkits.core.schema import Diagnostic, DType, Json, Launch, Solution, Task, TensorSpec
from toolkits.core.signature import size_of

SOLUTION_FILE = "solution.yaml"
ELEMENTS: dict[DType, tuple[str, ...]] = {
    "float32": ("float",),
    "float64": ("double",),
    "float16": ("half", "ushort"),
    "bfloat16": ("ushort",),
    "int32": ("int", "uint"),
    "int64": ("long", "ulong"),
    "bool": ("uchar", "char"),
}
"""What a kernel may point to for each type of tensor; vectors of it count too."""
INTEGERS = ("int", "uint", "long", "ulong")


@dataclass(frozen=True)
class Built:
    """What the compiler says of one kernel."""

    name: str
    arguments: list[tuple[str, str]]
    """Name and type."""
    most_work_items: int
    local_bytes: int
    wanted: tuple[int, ...]
    """The work-group size that its attribute requires; zeros: it requires none."""


def described(task: Task, solution: Solution) -> Json:
    """All that the host needs: launch.json."""
    constants = {name: axis.value for name, axis in task.axes.items() if axis.value is not None} | solution.chosen()
    return {
        "file": solution.entry_file,
        "function": solution.entry_function,
        "flags": [*solution.flags, *(f"-D{name}={value}" for name, value in constants.items())],
        "names": [*task.inputs, *task.outputs],
        "tensors": {
            name: {"dtype": spec.dtype, "shape": spec.shape} for name, spec in (task.inputs | task.outputs).items()
        },
        "axes": {axis: _place_of(task, axis) for axis in task.var_axes()},
        "constants": constants,
        "launches": [launch.model_dump() for launch in launches(solution)],
    }


def opencl_signature(task: Task, kernel: str) -> str:
    """The kernel that an OpenCL solution defines; further ones take the same."""
    tensors = [
        *((name, spec, "__global const ") for name, spec in task.inputs.items()),
        *((name, spec, "__global ") for name, spec in task.outputs.items()),
    ]
    parameters = [
        f"{ELEMENTS[spec.dtype][0]} {name}" if spec.shape is None else f"{space}{ELEMENTS[spec.dtype][0]}* {name}"
        for name, spec, space in tensors
    ]
    return f"__kernel void {kernel}({', '.join([*parameters, *(f'long {axis}' for axis in task.var_axes())])})"


def launches(solution: Solution) -> list[Launch]:
    if not solution.launch:
        raise InvalidInput(
            "an opencl solution says in solution.yaml how its kernels are launched, in order, for example\n"
            f'launch:\n  - {{kernel: {solution.entry_function}, global_size: ["64*rows"], local_size: ["64"]}}'
        )
    return solution.launch


def _place_of(task: Task, axis: str) -> tuple[str, int]:
    """A tensor and the dimension of it that is this axis."""
    for name, spec in (task.inputs | task.outputs).items():
        for place, size in enumerate(spec.shape or []):
            if size == axis:
                return name, place
    raise InvalidInput(f"task {task.name}: no tensor has {axis} as a dimension, so an opencl solution cannot tell it")


def problems(task: Task, solution: Solution, kernels: list[Built], device_local_bytes: int) -> list[Diagnostic]:
    """What would fail at a launch, for every size that the task asks for; each kind of it once."""
    known = {kernel.name: kernel for kernel in kernels}
    found: list[str] = []
    for launch in launches(solution):
        kernel = known.get(launch.kernel)
        if not kernel:
            found.append(f"there is no kernel {launch.kernel!r}: the program has {', '.join(known) or 'none'}")
            continue
        found += _wrong_arguments(task, kernel)
        found += [text for axes in _sizes(task) if (text := _wrong_size(task, solution, axes, launch, kernel))][:1]
        if kernel.local_bytes > device_local_bytes:
            found.append(
                f"kernel {kernel.name} needs {kernel.local_bytes} bytes of local memory, the device has"
                f" {device_local_bytes}: use a smaller tile"
            )
    return [Diagnostic(severity="error", message=message, file=SOLUTION_FILE) for message in dict.fromkeys(found)]


def threads(task: Task, solution: Solution, name: str) -> int | None:
    """Work items of a group on the first workload, where the solution says it."""
    sizes = _named_sizes(task, solution, task.workloads[0].axes)
    sized = [launch for launch in launches(solution) if launch.kernel == name and launch.local_size]
    return prod(size_of(text, sizes) for text in sized[0].local_size) if sized else None


def _sizes(task: Task) -> Iterator[dict[str, int]]:
    yield from task.correctness
    yield from (workload.axes for workload in task.workloads)


def _named_sizes(task: Task, solution: Solution, axes: dict[str, int]) -> dict[str, int]:
    return task.sizes(axes) | solution.chosen()


def _wrong_arguments(task: Task, kernel: Built) -> Iterator[str]:
    specs = [*task.inputs.items(), *task.outputs.items()]
    names = [*(name for name, _ in specs), *task.var_axes()]
    if len(kernel.arguments) != len(names):
        takes = f"kernel {kernel.name} takes {len(kernel.arguments)} arguments"
        yield f"{takes}, the launch passes {len(names)}: {', '.join(names)}"
        return
    for place, (name, declared) in enumerate(kernel.arguments):
        passed = _passed(specs[place][1]) if place < len(specs) else INTEGERS
        if re.sub(r"(2|3|4|8|16)?\*$", "*", declared) not in passed:
            yield (
                f"kernel {kernel.name}: argument {place + 1} `{name}` is `{declared}`, the launch passes"
                f" {names[place]} as `{passed[0]}`"
            )


def _passed(spec: TensorSpec) -> tuple[str, ...]:
    if spec.shape is None and spec.dtype in ("int32", "int64"):
        return INTEGERS
    return tuple(f"{name}*" if spec.shape is not None else name for name in ELEMENTS[spec.dtype])


def _wrong_size(task: Task, solution: Solution, axes: dict[str, int], launch: Launch, kernel: Built) -> str:
    sizes = _named_sizes(task, solution, axes)
    whole = [size_of(text, sizes) for text in launch.global_size]
    group = [size_of(text, sizes) for text in launch.local_size]
    where = f"launch of {kernel.name} for {', '.join(f'{name}={size}' for name, size in axes.items())}"
    if group and len(group) != len(whole):
        return f"{where}: global_size has {len(whole)} dimensions, local_size {len(group)}"
    if min(whole, default=0) < 0 or min(group, default=1) < 1:
        return f"{where}: a size is below its least: global {whole}, local {group}"
    if prod(group) > kernel.most_work_items:
        return f"{where}: {prod(group)} work items a group, at most {kernel.most_work_items} are possible"
    if any(kernel.wanted) and list(kernel.wanted[: len(group)]) != group:
        return f"{where}: local_size is {group}, the kernel's reqd_work_group_size {list(kernel.wanted[: len(whole)])}"
    if any(total % each for total, each in zip(whole, group, strict=False)):
        return (
            f"{where}: local_size {group} does not divide global_size {whole}: round up, as (rows+63)//64*64 does, and"
            " leave out in the kernel what is past the end"
        )
    return ""
