"""What the server asks of the child that compiles Triton kernels, and what it answers. Types only: no torch here."""

from pathlib import Path

from toolkits.core.schema import Record, Solution, Task, Workload


class TritonRequest(Record):
    """Compile what a call on a workload launches."""

    task: Task
    workload: Workload
    solution: Solution
    artifact: Path
    arguments: Path
    """The workload's inputs as raw files; an empty folder: any floats will do."""
    answer: Path
    tuning_s: float
    """After so long no further configuration of a kernel is begun."""
    targets: list[tuple[str, str, int]]
    """Backend, architecture and threads of a warp each."""


class Variant(Record):
    """One kernel compiled for one target under one configuration."""

    kernel: str
    file: str
    line: int
    target: str
    configuration: str
    """Empty: the kernel is not tuned."""
    warps: int
    shared_bytes: int
    assembly: str
    """PTX or AMD's assembly."""
    image: str
    """The cubin in base64; empty for AMD."""


class Problem(Record):
    """What failed, and where in the solution."""

    target: str
    message: str
    file: str = ""
    line: int | None = None
    configuration: str = ""
    """Empty: the call itself failed."""


class Tuned(Record):
    """A kernel with configurations to choose from."""

    kernel: str
    configurations: list[str]


class TritonAnswer(Record):
    """What came of it, so far."""

    variants: list[Variant] = []
    problems: list[Problem] = []
    tuned: list[Tuned] = []
    doing: str = ""
    """What was begun last; empty at the end."""
