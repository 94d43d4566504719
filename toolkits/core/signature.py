"""A task's interface as C and Python text, and its shapes as numbers. Knows no compiler and no torch."""

import ast
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from toolkits.core.errors import InvalidInput
from toolkits.core.schema import DType, Plan, Solution, Task, TensorSpec

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

Dialect = Literal["cuda", "hip"]
_RUNTIME: Mapping[Dialect, str] = {"cuda": "_runtime.h", "hip": "/hip_runtime.h"}

_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.FloorDiv: lambda left, right: left // right,
}


WORKSPACE = "workspace"
"""What C++ calls the memory that a plan leaves for its run."""


def plan_of(task: Task, solution: Solution) -> Plan | None:
    """The task's plan step, if the solution takes it."""
    if not solution.plan_entry_point:
        return None
    if not task.plan:
        raise InvalidInput(
            f"task {task.name} has no plan step: leave out plan_entry_point, and do in run what the plan does"
        )
    return task.plan


def c_header(task: Task, entry_function: str, plan_function: str = "") -> str:
    """The `task.h` that a C++ solution includes: constant axes, and the functions it must define."""
    shapes = [f"//   {line}" for line in (*tensor_lines(task.inputs), *tensor_lines(task.outputs))]
    constants = [
        f"constexpr int64_t {name} = {axis.value};" for name, axis in task.axes.items() if axis.value is not None
    ]
    plan = [f"{c_plan_signature(task, plan_function)};"] if plan_function else []
    return "\n".join(
        [
            "#pragma once",
            "#include <cstdint>",
            "",
            *constants,
            "",
            f"// {task.name}: dense row-major tensors, inputs then outputs, then the sizes that vary.",
            *shapes,
            *plan,
            f"{c_signature(task, entry_function, planned=bool(plan_function))};",
            "",
        ]
    )


def device_header(task: Task, dialect: Dialect, entry_function: str, plan_function: str = "") -> str:
    """The `task.h` of a CUDA or HIP solution: as in C++, but pointers are the device's and a stream comes last."""
    plan = device_signature(task, dialect, plan_function, "plan") if plan_function else ""
    run = device_signature(task, dialect, entry_function, "planned" if plan_function else "run")
    text = c_header(task, entry_function, plan_function)
    text = text.replace("#include <cstdint>", f"#include <cstdint>\n#include <{dialect}{_RUNTIME[dialect]}>")
    text = text.replace("row-major tensors,", "row-major tensors on the device,")
    lines = [line for line in text.splitlines() if not line.startswith('extern "C"')]
    return "\n".join([*lines, *([f"{plan};"] if plan else []), f"{run};", ""])


def device_signature(task: Task, dialect: Dialect, function: str, step: Literal["run", "planned", "plan"]) -> str:
    """The declaration of a host function that launches kernels on `stream`; `planned`: the run of one with a plan."""
    parameters = _c_plan_parameters(task) if step == "plan" else c_parameters(task, planned=step == "planned")
    return f'extern "C" void {function}({", ".join([*parameters, f"{dialect}Stream_t stream"])})'


def c_signature(task: Task, entry_function: str, *, planned: bool = False) -> str:
    """The declaration of the function that a C++ solution defines; `planned`: where it has a plan."""
    return f'extern "C" void {entry_function}({", ".join(c_parameters(task, planned=planned))})'


def c_plan_signature(task: Task, plan_function: str) -> str:
    """The declaration of the plan that a C++ solution may define."""
    return f'extern "C" void {plan_function}({", ".join(_c_plan_parameters(task))})'


def c_call(task: Task, entry_function: str, plan_function: str = "") -> str:
    """The `call.h` of the profiler's driver: how a list of arguments becomes one call, and the plan before it."""
    call = ", ".join(_c_arguments(task, c_parameters(task, planned=bool(plan_function))))
    plan = ", ".join(_c_arguments(task, _c_plan_parameters(task))) if plan_function else ""
    return "\n".join(
        [
            '#include "task.h"',
            f"using Kernel = decltype({entry_function});",
            f'constexpr const char* KERNEL_NAME = "{entry_function}";',
            f'constexpr const char* PLAN_NAME = "{plan_function}";',
            "static inline void call(Kernel* kernel, void** arguments) {",
            f"    kernel({call});",
            "}",
            "static inline void call_plan([[maybe_unused]] void* function, [[maybe_unused]] void** arguments) {",
            f"    reinterpret_cast<decltype({plan_function})*>(function)({plan});" if plan_function else "",
            "}",
            "",
        ]
    )


def device_call(task: Task, entry_function: str, plan_function: str = "") -> str:
    """The `call.h` of the GPU profilers' host program: as `c_call`, with a stream, and which arguments are tensors."""
    tensors = [*(spec.shape is not None for spec in (*task.inputs.values(), *task.outputs.values()))]
    on_device = [*tensors, *(False for _ in task.var_axes()), True]
    call = ", ".join([*_c_arguments(task, c_parameters(task, planned=bool(plan_function))), "stream"])
    plan = ", ".join([*_c_arguments(task, _c_plan_parameters(task)), "stream"]) if plan_function else ""
    return "\n".join(
        [
            '#include "task.h"',
            f"constexpr bool ON_DEVICE[] = {{{', '.join(str(one).lower() for one in on_device)}}};",
            "template <class Stream> void call([[maybe_unused]] void** arguments, Stream stream) {",
            f"    {entry_function}({call});",
            "}",
            "template <class Stream>",
            "void call_plan([[maybe_unused]] void** arguments, [[maybe_unused]] Stream stream) {",
            f"    {plan_function}({plan});" if plan_function else "",
            "}",
            "",
        ]
    )


def _c_arguments(task: Task, parameters: list[str]) -> list[str]:
    """Parameters as expressions on the profiler's list: inputs, outputs, variable axes, workspace."""
    order = [*task.inputs, *task.outputs, *task.var_axes(), WORKSPACE]
    split = [(parameter.rpartition(" ")[0], order.index(parameter.rpartition(" ")[2])) for parameter in parameters]
    return [
        f"({type_})arguments[{index}]" if "*" in type_ else f"*(const {type_}*)arguments[{index}]"
        for type_, index in split
    ]


def c_parameters(task: Task, *, planned: bool = False) -> list[str]:
    """C parameters in call order: inputs, outputs, what the plan left, variable axes."""
    names = [*task.inputs, *task.outputs, *([WORKSPACE] if task.plan else []), *task.var_axes()]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidInput(f"task {task.name}: {', '.join(twice)} names two arguments; rename the axis or the tensor")
    outputs = [f"{C_TYPES[spec.dtype]}* {name}" for name, spec in task.outputs.items()]
    workspace = [f"const void* {WORKSPACE}"] if planned else []
    return [*_c_inputs(task, task.inputs), *outputs, *workspace, *_c_axes(task)]


def _c_plan_parameters(task: Task) -> list[str]:
    return [*_c_inputs(task, task.plan.inputs if task.plan else []), f"void* {WORKSPACE}", *_c_axes(task)]


def _c_inputs(task: Task, names: Iterable[str]) -> list[str]:
    specs = [(name, task.inputs[name]) for name in names]
    return [
        f"{C_TYPES[spec.dtype]} {name}" if spec.shape is None else f"const {C_TYPES[spec.dtype]}* {name}"
        for name, spec in specs
    ]


def _c_axes(task: Task) -> list[str]:
    return [f"int64_t {name}" for name in task.var_axes()]


def tensor_signature(task: Task, function: str) -> str:
    """The function of a C++ or CUDA solution with a binding; `Tensor` is the binding's own type."""
    scalar = {"float": "double", "int": "int64_t"}
    inputs = [
        f"{'Tensor' if spec.shape is not None else scalar[_python_type(spec)]} {name}"
        for name, spec in task.inputs.items()
    ]
    return f"void {function}({', '.join([*inputs, *(f'Tensor {name}' for name in task.outputs)])})"


def python_signature(task: Task, *, planned: bool = False) -> str:
    """The function that a Python solution defines, in destination-passing style; `planned`: where it has a plan."""
    parameters = [f"{name}: {_python_type(spec)}" for name, spec in (*task.inputs.items(), *task.outputs.items())]
    return f"def run({', '.join([*(['plan: object'] if planned else []), *parameters])}) -> None"


def python_plan_signature(task: Task) -> str:
    """The plan that a Python solution may define; what it returns is its run's first argument."""
    names = task.plan.inputs if task.plan else []
    return f"def plan({', '.join(f'{name}: {_python_type(task.inputs[name])}' for name in names)}) -> object"


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
