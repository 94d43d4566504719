"""Arguments that several tools take, with what a client is told of them."""

from typing import Annotated

from pydantic import Field

TaskName = Annotated[str, Field(description="Name of a task, from list_tasks.")]
AnyTask = Annotated[
    str, Field(description="Name of a task; empty: `path` is a .cu file or a folder of them, of no task.")
]
Targets = Annotated[
    tuple[str, ...],
    Field(description="GPU architectures, such as sm_90a, sm_100a, gfx942; none: the solution's or the toolkit's own."),
]
Path = Annotated[
    str,
    Field(
        description="Folder of a solution (a relative one starts at your working directory, a role's at its worktree), "
        "or the name of one that comes with the task."
    ),
]
WaitS = Annotated[float, Field(description="Seconds to wait for the end, at most 50; the job goes on afterwards.")]
Workload = Annotated[str, Field(description="uuid of a workload of the task; empty: the first.")]
Command = Annotated[tuple[str, ...], Field(description="Any command line instead of a solution: program, arguments.")]
Against = Annotated[
    str, Field(description="An earlier report, or the id of a job that profiled: tells what changed since.")
]
Baseline = Annotated[str, Field(description="Solution to compare with; empty: the task's first baseline.")]
Workloads = Annotated[
    tuple[str, ...] | None,
    Field(description="uuids of the workloads to time, for a quick look; none: all of the task, which a result needs."),
]
Fresh = Annotated[bool, Field(description="Draw all inputs anew instead of reusing prepared ones.")]
JsonText = Annotated[str, Field(description="A JSON object, as text.")]
