"""OpenCL solutions: PoCL builds the kernels for this CPU, and a host of ours launches them. Runs no kernel itself."""

import json
import re
import shutil
import time
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path, PurePosixPath

from toolkits.core import diagnostics, process
from toolkits.core.builds import content_key, find, keep_final, work_folder, write_sources
from toolkits.core.compiler import cpu
from toolkits.core.errors import HarnessError, InvalidInput, ToolkitUnavailable
from toolkits.core.judge.confine import surroundings
from toolkits.core.opencl_launch import Built, described, problems, threads
from toolkits.core.profile_box import room
from toolkits.core.profile_child import child_environment, python_inside
from toolkits.core.schema import CompileResult, Diagnostic, Json, KernelReport, Solution, Task
from toolkits.core.toolkit import Purpose, Toolkit

COMPILE_LIMIT_S = 60.0
SOURCES = "src"
HOST, BUILD, LAUNCH = "opencl_host.py", "opencl_build.py", "launch.json"
ASKED, REPORT = "build.json", "report.json"
CORE = Path(__file__).parent / "core"
PACKAGES = ("pyopencl", "pocl-binary-distribution")
_ALLOWED = re.compile(r"-(cl-[\w=.-]+|D\w+(=[\w.+-]*)?|U\w+|w|Werror)")
_MESSAGE = re.compile(
    r"^\s*(?P<severity>fatal error|error|warning|note): (?:.*/)?(?P<file>[^:/\s]+):(?P<line>\d+):(?P<column>\d+): "
    r"(?P<message>.*)$"
)


class OpenclToolkit:
    """Builds one program a solution, cached by content and packages."""

    name = "opencl"

    def missing(self) -> str:
        if not (find_spec("pyopencl") and find_spec("pocl_binary_distribution")):
            return "pyopencl and PoCL: `pip install 'kernel-lab[opencl]'`"
        return "" if shutil.which("ld") else "a linker, which PoCL calls for each kernel: `apt install binutils`"

    async def compile(self, task: Task, solution: Solution, builds: Path, purpose: Purpose = "run") -> CompileResult:
        """Build under `builds`, or find the same content already built there; both purposes are the same build."""
        _check(solution)
        launch = described(task, solution)
        host = (CORE / HOST).read_text(encoding="utf-8")
        axes = [*task.correctness, *(workload.axes for workload in task.workloads)]
        folder = builds.resolve() / content_key("opencl", solution.id, launch, axes, host, _versions(), cpu())
        if found := find(folder):
            return found
        if missing := self.missing():
            raise ToolkitUnavailable(f"this machine lacks {missing}")
        with work_folder(builds) as work:
            files = {**solution.sources, HOST: host, LAUNCH: json.dumps(launch)}
            write_sources(work / SOURCES, files)
            result = await _built(work, task, solution, files)
            return keep_final(work, folder, result)


_TOO_LONG = f"compile_timeout: stopped after {COMPILE_LIMIT_S:g} s"


async def _built(work: Path, task: Task, solution: Solution, files: dict[str, str]) -> CompileResult:
    started = time.monotonic()
    answer = await _asked(work, files)
    log, kernels = str(answer["log"]), [_kernel(kernel) for kernel in answer["kernels"]]
    found = parse(log)
    if answer["ok"]:
        found = [*problems(task, solution, kernels, answer["local_bytes"]), *found]
    elif log == _TOO_LONG:
        found = [Diagnostic(severity="error", message=log)]
    else:
        found = diagnostics.with_error(found, log)
    ok = not any(diagnostic.severity == "error" for diagnostic in found)
    return CompileResult(
        ok=ok,
        solution=solution.id,
        toolkit="opencl",
        artifact=work / SOURCES if ok else None,
        command=["clBuildProgram", solution.entry_file, *described(task, solution)["flags"]],
        diagnostics=found[: diagnostics.MOST],
        log=log,
        build_ms=(time.monotonic() - started) * 1e3,
        toolchain=answer["toolchain"],
        loads_as="python",
        host=HOST,
        kernels=[_reported(task, solution, kernel, answer["device"]) for kernel in kernels],
    )


async def _asked(work: Path, files: dict[str, str]) -> Json:
    """The compiler's answer, from a child in a box: a source can make it read files, loop, or fall over."""
    visible = [Path(path) for path in surroundings()["visible"]]
    asked = {name: text for name, text in files.items() if name != LAUNCH}
    asked |= {ASKED: files[LAUNCH], BUILD: (CORE / BUILD).read_text(encoding="utf-8")}
    with room(work, visible) as own:
        write_sources(own.outside, asked)
        command = [str(python_inside()), BUILD]
        done = await own.run(command, child_environment(own.outside), COMPILE_LIMIT_S)
        reports = own.collect(work, REPORT)
    if reports:
        answer: Json = json.loads(reports[0].read_text(encoding="utf-8"))
        reports[0].unlink()
        return answer
    if done.returncode is not None and "pyopencl" in done.output and "Error" in done.output:
        raise HarnessError(f"OpenCL does not work here: {done.output.strip()[-500:]}")
    log = _TOO_LONG if done.returncode is None else f"the compiler ended itself: {_last_line(done)}"
    return {"ok": False, "log": log, "kernels": [], "toolchain": "PoCL", "device": "", "local_bytes": 0}


def _last_line(done: process.Completed) -> str:
    return next((line for line in reversed(done.output.splitlines()) if line.strip()), f"exit {done.returncode}")


def parse(log: str) -> list[Diagnostic]:
    """The messages of PoCL's clang, errors first, each once."""
    found: dict[Diagnostic, None] = {}
    for line in log.splitlines():
        if match := _MESSAGE.match(line):
            severity = "error" if "error" in match["severity"] else match["severity"]
            place = {"file": match["file"], "line": int(match["line"]), "column": int(match["column"])}
            found[Diagnostic.model_validate({"severity": severity, "message": match["message"], **place})] = None
    return sorted(found, key=lambda diagnostic: ("error", "warning", "note").index(diagnostic.severity))


def _kernel(seen: Json) -> Built:
    return Built(
        name=seen["name"],
        arguments=[(argument["name"], argument["type"]) for argument in seen["arguments"]],
        most_work_items=seen["most_work_items"],
        local_bytes=seen["local_bytes"],
        wanted=tuple(seen["wanted"]),
    )


def _reported(task: Task, solution: Solution, kernel: Built, device: str) -> KernelReport:
    """PoCL compiles to the CPU's own code: of registers it tells nothing."""
    return KernelReport(
        name=kernel.name,
        target=device,
        shared_bytes=kernel.local_bytes,
        threads=threads(task, solution, kernel.name),
        notes=[
            f"at most {kernel.most_work_items} work items a group; a group runs on one core, as loops over its items"
        ],
    )


def _check(solution: Solution) -> None:
    """What no build could mend."""
    if solution.plan_entry_point:
        raise InvalidInput("an opencl solution has no plan step yet: leave out plan_entry_point")
    if not solution.entry_file.endswith(".cl"):
        raise InvalidInput(f"the entry file {solution.entry_file!r} of an opencl solution must end in .cl")
    if not solution.destination_passing_style:
        raise InvalidInput("an opencl solution writes the outputs it is passed: leave out destination_passing_style")
    for name in solution.sources:
        if PurePosixPath(name).parts[0] in (HOST, BUILD, LAUNCH, ASKED, REPORT):
            raise InvalidInput(f"{name} is made by the toolkit: call the solution's file something else")
    for flag in solution.flags:
        if not _ALLOWED.fullmatch(flag):
            raise InvalidInput(f"OpenCL build option {flag!r} is refused: -cl-*, -D, -U, -w and -Werror count")


def _versions() -> list[str]:
    """Of the packages that decide what is built."""
    try:
        return [f"{name} {version(name)}" for name in PACKAGES]
    except PackageNotFoundError:
        return []


TOOLKIT: Toolkit = OpenclToolkit()
