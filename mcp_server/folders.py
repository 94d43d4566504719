"""How a task and a solution lie in a folder: task.yaml and its neighbours, solution.yaml and its sources."""

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path, PurePosixPath

from mcp_server.reading import content_of, json_mapping, record, text_of, yaml_mapping, yaml_text
from toolkits.core.errors import InvalidInput
from toolkits.core.schema import Solution, Task, Workload
from toolkits.core.signature import WORKSPACE, size_of

TASK_FILES = ("task.yaml", "reference.py", "workloads.jsonl")
SOLUTION_FILE = "solution.yaml"
MAX_SOURCE_BYTES = 1_000_000
MAX_YAML_BYTES = 100_000
MAX_FILES = 500
MAX_NAME = 200
MAX_DEPTH = 16
MAX_WORKSPACE_BYTES = 1 << 30
_MINIMAL_SOLUTION = "toolkit: cpp\nentry_point: kernel.cpp::function_name"
_SHAPE = re.compile(r"[\w\s+*/()-]+")


def read_task(folder: Path) -> Task:
    """Read, validate and hash the task in `folder`."""
    return _task(folder, tuple((name, text_of(folder / name)) for name in TASK_FILES))


@lru_cache(maxsize=64)
def _task(folder: Path, files: tuple[tuple[str, str], ...]) -> Task:
    """The same texts are the same task: parsed and validated once."""
    texts = dict(files)
    where = str(folder / "task.yaml")
    computed = {"workloads": _workloads(texts["workloads.jsonl"], folder), "folder": folder}
    values = yaml_mapping(texts["task.yaml"], where) | computed | {"content_hash": _hash(texts)}
    task = record(Task, values, where)
    for problem in _inconsistencies(task):
        raise InvalidInput(f"{where}: {problem}")
    return task


def read_solution(folder: Path, task: str) -> Solution:
    """Read and validate the solution in `folder`: all its text files, but hidden ones and caches."""
    file = folder / SOLUTION_FILE
    if not file.is_file():
        raise InvalidInput(f"{folder} has no {SOLUTION_FILE}; the least it needs is:\n{_MINIMAL_SOLUTION}")
    values = yaml_mapping(text_of(file, MAX_YAML_BYTES), str(file))
    if values.setdefault("task", task) != task:
        raise InvalidInput(f"{file}: it is for task {values['task']!r}, not {task!r}: correct the field or the call")
    if "sources" in values:
        raise InvalidInput(f"{file}: remove `sources`, the text files beside it are the sources")
    return record(Solution, values | {"sources": _sources(folder)}, str(file))


def read_loose(path: Path) -> dict[str, str]:
    """A source file, or all text files of a folder, that belong to no task."""
    return _sources(path) if path.is_dir() else {_source_name(path.name, path.parent): _source_text(path)}


def write_solution(solution: Solution, folder: Path) -> None:
    """Write what `read_solution` reads back to the same content."""
    for name, text in solution.sources.items():
        file = folder / _inside(name)
        file.parent.mkdir(parents=True, exist_ok=True)
        _write_durably(file, text)
    values = solution.model_dump(mode="json", exclude={"sources"})
    _write_durably(folder / SOLUTION_FILE, yaml_text(values))


def _write_durably(file: Path, text: str) -> None:
    with file.open("wb") as stream:
        stream.write(text.encode())
        stream.flush()
        os.fsync(stream.fileno())


def _hash(texts: dict[str, str]) -> str:
    return hashlib.sha256(repr(sorted(texts.items())).encode()).hexdigest()[:16]


def _workloads(text: str, folder: Path) -> list[Workload]:
    """One JSON object a line."""
    where = folder / "workloads.jsonl"
    return [
        record(Workload, json_mapping(line, f"{where}:{number}"), f"{where}:{number}")
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip()
    ]


def _inconsistencies(task: Task) -> Iterator[str]:
    """What the types cannot say."""
    if task.name != task.folder.name:
        yield f"field `name` is {task.name!r}, but the folder is {task.folder.name!r}: make them equal"
    yield from _wrong_shapes(task)
    yield from _wrong_axes(task)
    yield from _wrong_work(task)
    yield from _wrong_plan(task)
    for uuid, times in Counter(workload.uuid for workload in task.workloads).items():
        if times > 1:
            yield f"workloads.jsonl has uuid {uuid!r} {times} times: each workload needs its own"
    for workload in task.workloads:
        if workload.distribution and workload.distribution not in task.distributions:
            known = ", ".join(task.distributions)
            yield f"workload {workload.uuid!r} uses unknown distribution {workload.distribution!r}: known are {known}"
    for check in task.checks:
        if check.output not in task.outputs:
            yield f"a check names output {check.output!r}: the outputs are {', '.join(task.outputs)}"


def _wrong_shapes(task: Task) -> Iterator[str]:
    for name, tensor in (task.inputs | task.outputs).items():
        for size in tensor.shape or []:
            undeclared = set(re.findall(r"[^\W\d]\w*", size)) - task.axes.keys()
            if undeclared:
                yield f"shape of {name!r} uses undeclared axis {min(undeclared)!r}: the axes are {', '.join(task.axes)}"
            elif not _SHAPE.fullmatch(size):
                yield f"shape of {name!r}: {size!r} is not a sum or product of axes and integers"


def _wrong_axes(task: Task) -> Iterator[str]:
    expected = set(task.var_axes())
    given = [(f"workload {workload.uuid!r}", workload.axes) for workload in task.workloads]
    given += [(f"correctness round {number}", axes) for number, axes in enumerate(task.correctness, start=1)]
    for what, axes in given:
        if axes.keys() != expected:
            yield f"{what} gives axes {sorted(axes)}, the task's var axes are {sorted(expected)}: give exactly these"
        elif min(axes.values(), default=0) < 0:
            yield f"{what} has a negative axis: {axes}"


def _wrong_plan(task: Task) -> Iterator[str]:
    """A plan reads some inputs, never all: else it could do the work of the run."""
    if not task.plan or next(_wrong_axes(task), None):
        return
    named = task.plan.inputs
    for name in named:
        if name not in task.inputs:
            yield f"plan: inputs: there is no input {name!r}: the inputs are {', '.join(task.inputs)}"
        elif named.count(name) > 1:
            yield f"plan: inputs: {name!r} is there {named.count(name)} times: name each input once"
    if all(name in named for name, tensor in task.inputs.items() if tensor.shape is not None):
        yield "plan: inputs: a plan that may read every tensor could do the whole run: name what is known before"
    if WORKSPACE in (*task.inputs, *task.outputs, *task.axes):
        yield f"{WORKSPACE!r} is what a run is given of its plan: rename the axis or the tensor of that name"
    for axes in (*task.correctness, *(workload.axes for workload in task.workloads)):
        try:
            size = size_of(task.plan.workspace, task.sizes(axes))
        except InvalidInput as error:
            yield f"plan: workspace: {error}"
            return
        if not 0 <= size <= MAX_WORKSPACE_BYTES:
            yield f"plan: workspace: {task.plan.workspace!r} is {size} bytes for {axes}: 0 to {MAX_WORKSPACE_BYTES}"
            return


def _wrong_work(task: Task) -> Iterator[str]:
    """The least work must come to a number for every workload: a floor that fails would stop an evaluation."""
    if not task.work or next(_wrong_axes(task), None):
        return
    for kind, expression in (("bytes", task.work.bytes), ("flops", task.work.flops)):
        for workload in task.workloads:
            try:
                least = size_of(expression, task.sizes(workload.axes))
            except InvalidInput as error:
                yield f"task {task.name}: work: {kind}: {expression!r}: {error}"
                break
            if least < 0:
                where = f"for workload {workload.uuid!r}"
                yield f"task {task.name}: work: {kind}: {expression!r} is {least} {where}: below 0"


def _sources(folder: Path) -> dict[str, str]:
    sources: dict[str, str] = {}
    room = MAX_SOURCE_BYTES
    for file in _source_files(folder):
        text = _source_text(file)
        room -= len(text.encode())
        if room < 0 or len(sources) == MAX_FILES:
            raise InvalidInput(
                f"{folder} holds more than {MAX_SOURCE_BYTES} bytes or {MAX_FILES} files: keep only the kernel's"
                " sources there"
            )
        sources[_source_name(file.relative_to(folder).as_posix(), folder)] = text
    return sources


def _source_name(name: str, folder: Path) -> str:
    """A name that can be shown on one line, and stays short enough below any folder of ours."""
    if not name.isprintable() or len(name.encode()) > MAX_NAME:
        raise InvalidInput(f"{folder}: rename {name[:MAX_NAME]!r}: printable UTF-8 of at most {MAX_NAME} bytes")
    return name


def _source_files(folder: Path, depth: int = 0) -> Iterator[Path]:
    """Regular files below `folder` in a stable order; a link that leads out is refused."""
    if depth > MAX_DEPTH:
        raise InvalidInput(f"{str(folder)[:MAX_NAME]!r} and so on: folders lie deeper than {MAX_DEPTH}, flatten them")
    for entry in sorted(folder.iterdir()):
        if entry.name.startswith(".") or entry.name == "__pycache__" or entry == folder / SOLUTION_FILE:
            continue
        if entry.is_symlink():
            raise InvalidInput(f"{entry} is a symbolic link: copy what it points to")
        if entry.is_dir():
            yield from _source_files(entry, depth + 1)
        elif entry.is_file():
            yield entry
        else:
            raise InvalidInput(f"{entry} is not a regular file: remove it")


def _source_text(file: Path) -> str:
    content = content_of(file, MAX_SOURCE_BYTES, os.O_NOFOLLOW)
    if b"\0" in content:
        raise InvalidInput(f"{file} is a binary file: keep only the kernel's sources in its folder")
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise InvalidInput(f"{file} is not UTF-8 text: keep only the kernel's sources in its folder") from None


def _inside(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    hidden = any(part.startswith(".") or part == "__pycache__" for part in path.parts)
    if path.is_absolute() or hidden or name == SOLUTION_FILE or str(path) != name:
        raise InvalidInput(f"source name {name!r} must be a plain relative path such as `kernel.cpp`")
    return path
