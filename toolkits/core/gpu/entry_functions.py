"""Whether a CUDA or HIP solution defines its host functions. Reads text: their types are the compiler's business."""

import re

from toolkits.core.gpu.launches import plain
from toolkits.core.schema import Diagnostic, Solution, Task
from toolkits.core.signature import Dialect, device_signature


def entry_errors(task: Task, solution: Solution, dialect: Dialect) -> list[Diagnostic]:
    """Host functions that the sources do not define, with what to define."""
    planned, run = solution.plan_function, solution.entry_function
    wanted = [(run, solution.entry_file, device_signature(task, dialect, run, "planned" if planned else "run"))]
    if planned:
        file = solution.plan_entry_point.split("::")[0]
        wanted.append((planned, file, device_signature(task, dialect, planned, "plan")))
    # Bounded and without going back: a hostile source shall not make the search quadratic.
    return [
        Diagnostic(severity="error", message=f"missing entry function: define exactly `{signature}`", file=file)
        for function, file, signature in wanted
        if not re.search(rf"\b{function}\s*+\([^;{{}}]{{0,4000}}\)\s*+\{{", plain(solution.sources.get(file, "")))
    ]
