"""Child process that writes a workload's arguments as raw files, for whoever profiles a solution without the task.

python -P -m toolkits.core.judge.dump REQUEST.json
"""

import sys
from pathlib import Path

import torch

from toolkits.core.judge.inputs import Values, generator, load_reference
from toolkits.core.judge.worker import DTYPES
from toolkits.core.profile_child import DumpRequest
from toolkits.core.schema import DType, Task, Workload
from toolkits.core.signature import shape_of, size_of

ARGUMENT_LIST = "arguments.txt"
PROFILE_SEED = 20
"""The same content every time: two profiles of two kernels must compare."""


def workload_inputs(task: Task, workload: Workload) -> Values:
    """The inputs of a workload, with a fixed seed."""
    distribution = workload.distribution or next(iter(task.distributions))
    reference = load_reference(task.folder, task.reference_timeout_s)
    return reference.make_inputs(task.sizes(workload.axes), distribution, generator(PROFILE_SEED))


def empty_outputs(task: Task, workload: Workload) -> list[torch.Tensor]:
    """Preallocated outputs in task order."""
    sizes = task.sizes(workload.axes)
    return [torch.zeros(shape_of(spec, sizes), dtype=DTYPES[spec.dtype]) for spec in task.outputs.values()]


def dump(request: DumpRequest) -> None:
    """One file an input and size, one line an argument in the list."""
    task, sizes = request.task, request.task.sizes(request.workload.axes)
    inputs = workload_inputs(task, request.workload)
    lines: list[str] = []
    for name, spec in task.inputs.items():
        lines.append(_write(request.folder, len(lines), inputs[name], spec.dtype))
    for output in empty_outputs(task, request.workload):
        lines.append(f"{output.nbytes} -")
    for axis in task.var_axes():
        lines.append(_write(request.folder, len(lines), sizes[axis], "int64"))
    if task.plan:
        lines.append(f"{size_of(task.plan.workspace, sizes)} -")
    (request.folder / ARGUMENT_LIST).write_text("\n".join(lines) + "\n", encoding="utf-8")


def dumped_inputs(task: Task, workload: Workload, folder: Path) -> Values:
    """The inputs that were written into `folder`."""
    sizes, values = task.sizes(workload.axes), Values()
    for number, (name, spec) in enumerate(task.inputs.items()):
        content = bytearray((folder / f"{number}.bin").read_bytes())
        tensor = (
            torch.frombuffer(content, dtype=DTYPES[spec.dtype]) if content else torch.empty(0, dtype=DTYPES[spec.dtype])
        )
        values[name] = tensor.item() if spec.shape is None else tensor.reshape(shape_of(spec, sizes))
    return values


def _write(folder: Path, number: int, value: torch.Tensor | float | int, dtype: DType) -> str:
    tensor = torch.as_tensor(value, dtype=DTYPES[dtype]).contiguous().reshape(-1)
    name = f"{number}.bin"
    (folder / name).write_bytes(tensor.view(torch.uint8).numpy().tobytes())
    return f"{tensor.nbytes} {name}"


if __name__ == "__main__":
    torch.set_num_threads(1)
    dump(DumpRequest.model_validate_json(Path(sys.argv[1]).read_bytes()))
