"""A task's interface as C and Python text, and its shapes as numbers. Knows no compiler and no torch."""

import ast
from collections.abc import Callable, Mapping

from toolkits.core.errors import InvalidInput
from toolkits.core.schema import DType, Task, TensorSpec

C_TYPES: Mapping[DType, str] = {
    "float32": "float",
    "float64": "double",
    "float16": "uint16_t",
    "bfloat16": "uint16_t",
    "int32": "int32_t",
    "int64": "int64_t",
    "bool": "uint8_t",
}
"""16-bit floats cross as raw bits: C++20 has no portable name for them."""

_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.FloorDiv: lambda left, right: left // right,
}


def c_header(task: Task, entry_function: str) -> str:
    """The `task.h` that a C++ solution includes: constant axes, and the function it must define."""
    shapes = [f"//   {line}" for line in (*tensor_lines(task.inputs), *tensor_lines(task.outputs))]
    constants = [
        f"constexpr int64_t {name} = {axis.value};" for name, axis in task.axes.items() if axis.value is not None
    ]
    return "\n".join(
        [
            "#pragma once",
            "#include <cstdint>",
            "",
            *constants,
            "",
            f"// {task.name}: dense row-major tensors, inputs then outputs, then the sizes that vary.",
            *shapes,
            f"{c_signature(task, entry_function)};",
            "",
        ]
    )


def c_signature(task: Task, entry_function: str) -> str:
    """The declaration of the function that a C++ solution defines."""
    return f'extern "C" void {entry_function}({", ".join(c_parameters(task))})'


def c_call(task: Task, entry_function: str) -> str:
    """The `call.h` of the profiler's driver: how a list of arguments becomes one call."""
    arguments = [
        f"({parameter.rpartition(' ')[0]})arguments[{index}]"
        if "*" in parameter
        else f"*(const {parameter.rpartition(' ')[0]}*)arguments[{index}]"
        for index, parameter in enumerate(c_parameters(task))
    ]
    return "\n".join(
        [
            '#include "task.h"',
            f"using Kernel = decltype({entry_function});",
            f'constexpr const char* KERNEL_NAME = "{entry_function}";',
            "static inline void call(Kernel* kernel, void** arguments) {",
            f"    kernel({', '.join(arguments)});",
            "}",
            "",
        ]
    )


def c_parameters(task: Task) -> list[str]:
    """C parameters in call order: inputs, outputs, variable axes."""
    names = [*task.inputs, *task.outputs, *task.var_axes()]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidInput(f"task {task.name}: {', '.join(twice)} names two arguments; rename the axis or the tensor")
    inputs = [
        f"{C_TYPES[spec.dtype]} {name}" if spec.shape is None else f"const {C_TYPES[spec.dtype]}* {name}"
        for name, spec in task.inputs.items()
    ]
    outputs = [f"{C_TYPES[spec.dtype]}* {name}" for name, spec in task.outputs.items()]
    return [*inputs, *outputs, *(f"int64_t {name}" for name in task.var_axes())]


def python_signature(task: Task) -> str:
    """The function that a Python solution defines, in destination-passing style."""
    parameters = [f"{name}: {_python_type(spec)}" for name, spec in (*task.inputs.items(), *task.outputs.items())]
    return f"def run({', '.join(parameters)}) -> None"


def tensor_lines(tensors: Mapping[str, TensorSpec]) -> list[str]:
    """One line a tensor: name, type, shape, meaning."""
    return [f"{name}: {spec.dtype} {_shape_text(spec)} {spec.description}".rstrip() for name, spec in tensors.items()]


def shape_of(spec: TensorSpec, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The shape of a tensor for given axis sizes; `()` for a scalar."""
    return tuple(size_of(expression, sizes) for expression in spec.shape or ())


def size_of(expression: str, sizes: Mapping[str, int]) -> int:
    """The value of an axis expression such as `2*tokens-1`."""
    try:
        return _value(ast.parse(expression, mode="eval").body, sizes)
    except (SyntaxError, ZeroDivisionError) as error:
        raise InvalidInput(f"axis expression {expression!r} does not evaluate: {error}") from error


def _value(node: ast.expr, sizes: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=int(value)):
            return value
        case ast.Name(id=name) if name in sizes:
            return sizes[name]
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
            return _OPERATORS[type(op)](_value(left, sizes), _value(right, sizes))
        case _:
            raise InvalidInput(
                f"axis expression {ast.unparse(node)!r}: only axes ({', '.join(sizes)}), integers and + - * // count"
            )


def _python_type(spec: TensorSpec) -> str:
    if spec.shape is not None:
        return "torch.Tensor"
    return "float" if "float" in spec.dtype else "int"


def _shape_text(spec: TensorSpec) -> str:
    return "scalar" if spec.shape is None else f"[{', '.join(spec.shape)}]"
