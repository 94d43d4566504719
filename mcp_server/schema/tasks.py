"""What a caller is told of tasks."""

from toolkits.core.schema import Record, Tunable


class TaskLine(Record):
    name: str
    title: str
    op_type: str
    workloads: int
    baselines: list[str]
    start: str
    variants: list[str]


class TaskList(Record):
    tasks: list[TaskLine]


class SolutionLine(Record):
    name: str
    path: str
    """Give this to compile, benchmark and profile, or copy the folder and change it."""
    toolkit: str
    description: str
    tunables: dict[str, Tunable] = {}


class TaskDescription(Record):
    """All that a kernel's author must know."""

    name: str
    title: str
    description: str
    c_signature: str
    """The function that a `cpp` solution defines."""
    cuda_signature: str = ""
    """The host function of a `cuda` solution: pointers are the device's; in `hip` the stream is a hipStream_t."""
    tensor_signature: str = ""
    """The function with `binding: torch` (Tensor is torch::Tensor) or `tvm-ffi` (tvm::ffi::TensorView), C++ or CUDA."""
    opencl_signature: str = ""
    """The kernel of an `opencl` solution, whose solution.yaml says `launch: [{kernel: run, global_size: ["64*rows"],
    local_size: ["64"]}]`: expressions over axes and tunables."""
    python_signature: str
    """The function that a `python` solution defines; outputs are preallocated and passed last."""
    plan: str = ""
    """The step that a solution may take before its run, and what is different then; empty: the task has none."""
    c_plan_signatures: list[str] = []
    """The two functions of a `cpp` solution that names a plan_entry_point."""
    python_plan_signatures: list[str] = []
    inputs: list[str]
    """One line a tensor: name, dtype, shape, meaning."""
    outputs: list[str]
    checks: list[str]
    least_work: str = ""
    """What every call must move and compute at least; latencies are compared with what the core needs for it."""
    distributions: list[str]
    workloads: list[str]
    solutions: list[SolutionLine]
    lessons: list[str]
    """Slugs worth reading first."""
