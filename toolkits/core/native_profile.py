"""Profiles a C++ solution: a native driver calls the kernel once under callgrind, in a box."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from shutil import rmtree

from toolkits.core import callgrind_run, process
from toolkits.core.builds import content_key, find, keep, work_folder, write_sources
from toolkits.core.callgrind_run import Subject
from toolkits.core.compiler import Compiler, cpu, enclosed, environment, name_inside
from toolkits.core.errors import HarnessError
from toolkits.core.profile_box import room
from toolkits.core.profile_child import child_environment, dump_arguments
from toolkits.core.schema import CompileResult, ProfileReport, Solution, Task, Workload
from toolkits.core.signature import c_call, c_header

DRIVER = Path(__file__).parent / "profilers" / "driver.cpp"
DRIVER_FLAGS = ("-O1", "-std=c++20", "-I.")
BUILD_LIMIT_S = 60.0
MEASURED = "kernel_lab_measured_call"
"""Not the entry function itself: if that is recursive, its second entry would switch counting off."""
DONE = "driver: done"


async def profile(
    task: Task, solution: Solution, workload: Workload, library: Path, builds: Path, folder: Path, limit_s: float
) -> ProfileReport:
    """Counts of one call on the workload's inputs, by source line."""
    driver = await built_driver(task, solution, builds)
    arguments = await dump_arguments(task, workload, folder)
    try:
        with room(folder, [driver, library, arguments]) as own:
            subject = Subject(
                target=solution.id,
                command=[str(driver), str(library), str(arguments)],
                cwd=own.outside,
                environment=child_environment(folder),
                sources=solution.sources,
                count_inside=MEASURED,
                last_words=DONE,
                room=own,
            )
            report = await callgrind_run.profile(subject, folder, limit_s)
            notes = [*report.notes, *_build_notes(planned=bool(solution.plan_function)), *own.notes()]
            return report.model_copy(update={"notes": notes})
    finally:
        rmtree(arguments)


async def built_driver(
    task: Task,
    solution: Solution,
    builds: Path,
    flags: Sequence[str] = (),
    more: Mapping[str, str] | None = None,
) -> Path:
    """The driver for this signature, built once; `more` are sources of whoever watches it."""
    functions = solution.entry_function, solution.plan_function
    compiler = Compiler()
    sources = {
        "driver.cpp": DRIVER.read_text(encoding="utf-8"),
        "task.h": c_header(task, *functions),
        "call.h": c_call(task, *functions),
        **(more or {}),
    }
    folder = builds.resolve() / content_key("driver", sources, [*DRIVER_FLAGS, *flags], await compiler.version(), cpu())
    if found := find(folder):
        assert found.artifact
        return found.artifact
    with work_folder(builds) as work:
        write_sources(work, sources)
        command = [compiler.path(), *DRIVER_FLAGS, *flags, "driver.cpp", *(more or {}), "-o", "driver", "-ldl"]
        boxed = enclosed(command, work, ".")
        done = await process.run(boxed, cwd=work, timeout_s=BUILD_LIMIT_S, env=environment(name_inside(work)))
        if done.returncode != 0:
            raise HarnessError(f"the profiler's driver does not build: {done.output[-1000:]}")
        built = CompileResult(ok=True, solution="", toolkit="cpp", artifact=work / "driver", command=command)
        kept = keep(work, folder, built).artifact
        assert kept
        return kept


def _build_notes(*, planned: bool) -> list[str]:
    notes = ["counted: the first call, on one thread, with warm arguments; what a first call sets up is in it"]
    if planned:
        notes.append("the plan ran before it and is not counted")
    if " avx512f" in cpu():
        notes.append(
            "built for x86-64-v3 (AVX2), as valgrind runs no AVX-512; the timed build is -march=native and may use"
            " AVX-512, where code that vectorises takes fewer instructions"
        )
    return notes
