"""The plain C functions of an emulated library: what the judge calls, and how it becomes a call of the solution's own.

A solution's host function has the same parameters and mostly a stream after them; its symbol gets another name.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from toolkits.core.schema import Task
from toolkits.core.signature import C_TYPES, WORKSPACE

_DECLARATION = re.compile(r'^extern "C" void (\w+)\((.*)\);$', re.MULTILINE)
_OWN_NAME = "kernel_lab_device_"
_SHADOW = re.compile(r"(const )?(\w+)\* (\w+)")


@dataclass(frozen=True)
class Entry:
    """One host function that a header declares."""

    name: str
    parameters: list[str]
    """As the judge passes them, without a stream."""
    stream: bool


def entries(header: str) -> list[Entry]:
    """The functions that a `task.h` declares."""
    found: list[Entry] = []
    for name, text in _DECLARATION.findall(header):
        parameters = text.split(", ")
        stream = parameters[-1].endswith("Stream_t stream")
        found.append(Entry(name, parameters[:-1] if stream else parameters, stream))
    return found


def labelled(header: str) -> str:
    """The header in which the solution's functions have symbols of their own: the plain names are the judge's."""
    return _DECLARATION.sub(rf'extern "C" void \1(\2) asm("{_OWN_NAME}\1");', header)


PARTS = ("runtime", "faults", "warps", "launch", "host", "check_said", "check_memory", "check")
"""The emulation's own files, in the order in which they know one another."""


def wrapper(task: Task, functions: list[Entry]) -> str:
    """The unit with the exported functions, and with the emulation itself."""
    constants = [
        f"[[maybe_unused]] constexpr int64_t {n} = {a.value};" for n, a in task.axes.items() if a.value is not None
    ]
    return "\n".join(
        [
            *(f'#include "{part}.cpp"' for part in PARTS),
            *constants,
            *(_wrapped(task, function) for function in functions),
            "",
        ]
    )


def _wrapped(task: Task, entry: Entry) -> str:
    name, parameters = f"{_OWN_NAME}{entry.name}", ", ".join(entry.parameters)
    stream, nothing = (", simt_stream*", ", nullptr") if entry.stream else ("", "")
    sizes = _sizes(task)
    tensors = [match for parameter in entry.parameters if (match := _SHADOW.fullmatch(parameter))]
    shadows = [
        f'    simt::Tensor kept_{m[3]}("{m[3]}", {m[3]}, {sizes[m[3]]}, {"false" if m[1] else "true"});'
        for m in tensors
    ]
    used = {m[3] for m in tensors}
    names = [parameter.rpartition(" ")[2] for parameter in entry.parameters]
    types = {parameter.rpartition(" ")[2]: parameter.rpartition(" ")[0] for parameter in entry.parameters}
    passed = ", ".join(f"({types[n]})kept_{n}.memory" if n in used else n for n in names)
    return "\n".join(
        [
            f'extern "C" void device_{entry.name}({parameters}{stream}) asm("{name}");',
            f'extern "C" __attribute__((visibility("default"))) void {entry.name}({parameters}) {{',
            "    simt::last_error = 0;",
            *shadows,
            f"    device_{entry.name}({passed}{nothing});",
            "}",
        ]
    )


def _sizes(task: Task) -> Mapping[str, str]:
    """Bytes of each tensor, as C expressions over the axes."""
    tensors = {**task.inputs, **task.outputs}
    sizes = {
        name: " * ".join([f"sizeof({C_TYPES[spec.dtype]})", *(f"({size})" for size in spec.shape)]).replace("//", "/")
        for name, spec in tensors.items()
        if spec.shape is not None
    }
    return sizes | ({WORKSPACE: task.plan.workspace.replace("//", "/")} if task.plan else {})
