"""From a task's files to what a kernel's author reads. Reads no file itself."""

from pathlib import Path

from mcp_server.schema import SolutionLine, TaskDescription, TaskLine
from toolkits.core.opencl_launch import opencl_signature
from toolkits.core.schema import Check, Distribution, Solution, Task
from toolkits.core.signature import (
    c_plan_signature,
    c_signature,
    device_signature,
    python_plan_signature,
    python_signature,
    tensor_lines,
    tensor_signature,
)


def task_line(task: Task) -> TaskLine:
    return TaskLine(
        name=task.name,
        title=task.title,
        op_type=task.op_type,
        workloads=len(task.workloads),
        baselines=task.baselines,
        start=task.start,
        variants=task.variants,
    )


def described(task: Task, solutions: list[SolutionLine]) -> TaskDescription:
    return TaskDescription(
        name=task.name,
        title=task.title,
        description=task.description,
        c_signature=c_signature(task, "run"),
        cuda_signature=device_signature(task, "cuda", "run", "run"),
        tensor_signature=tensor_signature(task, "run"),
        opencl_signature=opencl_signature(task, "run"),
        python_signature=python_signature(task),
        plan=_plan(task),
        c_plan_signatures=[c_plan_signature(task, "plan"), c_signature(task, "run", planned=True)] if task.plan else [],
        python_plan_signatures=[python_plan_signature(task), python_signature(task, planned=True)] if task.plan else [],
        inputs=tensor_lines(task.inputs),
        outputs=tensor_lines(task.outputs),
        checks=[_check(check) for check in task.checks],
        least_work=f"{task.work.bytes} bytes, {task.work.flops} operations" if task.work else "",
        distributions=[_distribution(name, d) for name, d in task.distributions.items()],
        workloads=[f"{w.uuid}: {_axes(w.axes)} {w.distribution}".strip() for w in task.workloads],
        solutions=solutions,
        lessons=task.lessons,
    )


def _plan(task: Task) -> str:
    if not task.plan:
        return ""
    return (
        f"a solution may name `plan_entry_point: file::function`: it is called before each run, when only "
        f"{', '.join(task.plan.inputs)} is written, and its time counts; in C++ it leaves what it likes in a workspace "
        f"of {task.plan.workspace} bytes, in Python it returns an object"
    )


def solution_line(name: str, folder: Path, solution: Solution) -> SolutionLine:
    return SolutionLine(
        name=name,
        path=str(folder),
        toolkit=solution.toolkit,
        description=solution.description,
        tunables=solution.tunables,
    )


def _distribution(name: str, distribution: Distribution) -> str:
    scale = distribution.tolerance_scale
    return f"{name}: {distribution.description}" + (f" (tolerance x{scale:g})" if scale != 1 else "")


def _check(check: Check) -> str:
    parameters = "".join(f", {name}={value}" for name, value in check.parameters.items())
    return f"{check.output}: {check.rule} within {check.tolerance:g}{parameters}"


def _axes(axes: dict[str, int]) -> str:
    return " ".join(f"{name}={size}" for name, size in axes.items())
