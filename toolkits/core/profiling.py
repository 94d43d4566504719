"""Profiles a solution or any command line with what this machine has. Decides no verdict on speed."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from toolkits.core import callgrind_run, gpu_profile, native_profile, process, python_profile
from toolkits.core.callgrind_run import LIMIT_S, Subject
from toolkits.core.errors import InvalidInput, ToolkitUnavailable
from toolkits.core.gpu import solution_profile
from toolkits.core.profilers import ncu_rep, perf
from toolkits.core.profilers.verdict import verdict
from toolkits.core.schema import CompileResult, ProfileReport, Solution, Task, Workload
from toolkits.core.signature import Dialect
from toolkits.core.toolkit import get_toolkit

PERF_REPORT = "perf.csv"
VISIBLE = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
PASSED_ON = ("PATH", "HOME", "USER", "LANG", "TMPDIR", "LD_LIBRARY_PATH", *VISIBLE)
"""A command of the user needs a few variables; keys and tokens of this process are not among them."""
GPU_PROFILERS = {
    "ncu": "comes with Nsight Compute or the CUDA toolkit; its reports are read without it",
    "rocprofv3": "comes with ROCm 6.2 or later; its reports are read without it",
}
DIALECTS: dict[str, Dialect] = {"cuda": "cuda", "hip": "hip"}
BOUND = (
    "a C++ solution with a binding is called by Python, where callgrind cannot follow: give the same kernel an entry on"
    " pointers, without `binding`, and profile that"
)
OF_A_COMMAND = (
    "no profiler follows {} solutions by itself: on a machine with the GPU give profile the command line of a program"
    " that calls it, or the path of a report made there"
)
COUNTER_DEVICES = ("cpu", "cpu_core", "armv8*")


async def profile_solution(
    task: Task, solution: Solution, workload: Workload, builds: Path, folder: Path, limit_s: float = LIMIT_S
) -> ProfileReport:
    """Where one call of a solution spends its instructions (C++) or its time (Python); a GPU's figures (CUDA, HIP)."""
    folder.mkdir(parents=True, exist_ok=True)
    build = await get_toolkit(solution.toolkit).compile(task, solution, builds, "profile")
    artifact = _artifact(build)
    if dialect := DIALECTS.get(solution.toolkit):
        return await solution_profile.profile(task, solution, dialect, workload, build, builds, folder, limit_s)
    if solution.binding:
        raise ToolkitUnavailable(BOUND)
    if solution.toolkit == "cpp" and artifact:
        return await native_profile.profile(task, solution, workload, artifact, builds, folder, limit_s)
    if solution.toolkit == "python" and artifact:
        return await python_profile.profile(task, solution, workload, artifact, folder, limit_s)
    return solution_profile.estimated(task, solution, workload, build, OF_A_COMMAND.format(solution.toolkit))


async def profile_command(command: Sequence[str], cwd: Path, folder: Path, limit_s: float = LIMIT_S) -> ProfileReport:
    """The GPU's part of a command line where a GPU profiler is; else the CPU's own counters, else callgrind's.

    The command is the user's own program and runs as the user would start it: in no box, with the user's files, network
    and rights. Whoever may not have those must not be given this.
    """
    program = _program(command, cwd)
    folder.mkdir(parents=True, exist_ok=True)
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    subject = Subject(target=" ".join(command), command=[program, *command[1:]], cwd=cwd, environment=environment)
    gpu = await gpu_profile.profile(subject.command, cwd, folder, environment, limit_s)
    if gpu and not gpu_profile.saw_nothing(gpu):
        return gpu
    counters = await has_counters()
    if gpu and _is_python(Path(program)) and not counters:
        return gpu
    report = await _of_cpu(subject, Path(program), folder, limit_s, counters)
    return report.model_copy(update={"notes": [*report.notes, f"{gpu.tool} saw no GPU kernel"]}) if gpu else report


async def _of_cpu(subject: Subject, program: Path, folder: Path, limit_s: float, counters: bool) -> ProfileReport:
    if counters:
        return await _perf(subject, folder, limit_s)
    if _is_python(program):
        raise InvalidInput(
            "a Python command cannot be profiled here: the CPU's counters are not available and callgrind would need"
            " hours for an interpreter with torch. Profile the solution itself, or a native program"
        )
    return await callgrind_run.profile(subject, folder, limit_s)


def profilers() -> dict[str, str]:
    """Each profiler: empty when it works here, else what is missing."""
    return {
        "callgrind": callgrind_run.missing(),
        "perf": _perf_missing(),
        "sampling": "",
        **{name: "" if shutil.which(name) else f"{name}: {how}" for name, how in GPU_PROFILERS.items()},
        "ncu-report": "" if ncu_rep.installed() else "ncu-report: `pip install kernel-lab[ncu]`; reads .ncu-rep files",
    }


def _artifact(build: CompileResult) -> Path | None:
    """What was built, if the CPU can run it."""
    if build.ok:
        return build.artifact
    first = build.diagnostics[0]
    raise InvalidInput(f"the solution does not compile for profiling: {first.file}:{first.line}: {first.message}")


def _program(command: Sequence[str], cwd: Path) -> str:
    """Full path of the program, found as a shell in `cwd` would."""
    if not command:
        raise InvalidInput('give a command line to profile, such as ["./my_program", "--size", "1024"]')
    path = str(cwd / command[0]) if "/" in command[0] else shutil.which(command[0])
    if not path or not os.access(path, os.X_OK) or Path(path).is_dir():
        raise InvalidInput(f"no program {command[0]!r}: give a path relative to {cwd}, or a name on PATH")
    return path


def _is_python(program: Path) -> bool:
    """The interpreter, or a script for it."""
    with program.open("rb") as file:
        first = file.readline(200)
    return program.resolve().name.startswith("python") or (first.startswith(b"#!") and b"python" in first)


async def has_counters() -> bool:
    """Ask perf itself: containers and settings forbid what the hardware has."""
    if _perf_missing():
        return False
    done = await process.run(["perf", "stat", "-x,", "-e", "instructions", "true"], cwd=Path("/"), timeout_s=10)
    return done.returncode == 0 and not perf.missing(done.output)


async def _perf(subject: Subject, folder: Path, limit_s: float) -> ProfileReport:
    raw = folder.resolve() / PERF_REPORT
    command = ["perf", "stat", "-x,", "-o", str(raw), "-e", ",".join(perf.EVENTS), "--", *subject.command]
    done = await process.run(command, cwd=subject.cwd, timeout_s=limit_s, env=subject.environment)
    (folder / "output.log").write_text(done.output, encoding="utf-8")
    report = ProfileReport(tool="perf", target=subject.target, command=list(subject.command), raw_report=str(raw))
    if done.returncode is None:
        return report.model_copy(update={"verdict": f"stopped after {limit_s:.0f} s: profile a smaller workload"})
    return perf_report(report, raw.read_text(encoding="utf-8"), done.returncode)


def perf_report(report: ProfileReport, text: str, returncode: int) -> ProfileReport:
    """The report with what `perf stat` counted."""
    found = perf.parse(text)
    counts = perf.counts(found)
    bottleneck, line = verdict(counts)
    ended = [f"the program ended with exit status {returncode}"] if returncode else []
    update = {
        "duration_us": perf.duration_us(found),
        "bottleneck": bottleneck,
        "verdict": line,
        "notes": ["hardware counters of the whole program; they name no lines", *ended],
        **counts.measured(),
    }
    return report.model_copy(update=update)


def _perf_missing() -> str:
    if not shutil.which("perf"):
        return "perf: `apt install linux-perf`; callgrind is used instead"
    devices = Path("/sys/bus/event_source/devices")
    if any(match for name in COUNTER_DEVICES for match in devices.glob(name)):
        return ""
    return "hardware counters: this kernel offers none, as in most virtual machines; callgrind is used instead"
