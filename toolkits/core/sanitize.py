"""Runs a solution under the sanitizers that fit it, in a box of its own, on the task's correctness rounds.

C++: AddressSanitizer with UndefinedBehaviorSanitizer, and ThreadSanitizer where it has threads. OpenCL: oclgrind. CUDA
and HIP: the checks of the emulation. Times nothing, compares nothing.
"""

import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from toolkits.core import process, sanitizer_reports
from toolkits.core.builds import write_sources
from toolkits.core.errors import HarnessError, ToolkitUnavailable
from toolkits.core.gpu import simt_check
from toolkits.core.judge.confine import surroundings
from toolkits.core.native_profile import DONE, built_driver
from toolkits.core.profile_box import Room, room
from toolkits.core.profile_child import child_environment, last_words, python_inside
from toolkits.core.rounds import recorded, rounds_of
from toolkits.core.schema import CompileResult, SanitizerFinding, Solution, Task, Workload
from toolkits.core.signature import Dialect
from toolkits.core.toolkit import Purpose, get_toolkit

ENOUGH = 3
"""Findings shown, of however many."""
LIMIT_S = 60.0
THREADS = "4"
OMP_ORDER = Path(__file__).parent / "profilers" / "omp_order.cpp"
CALL = Path(__file__).parent / "opencl_call.py"
OCLGRIND_LOG = "oclgrind.log"
MOST_ERRORS = "1000"
MEMORY_MB = 8000
BOUND = "no sanitizer runs where Python calls the kernel: give the same kernel an entry on pointers, without `binding`"
DIALECTS: dict[str, Dialect] = {"cuda": "cuda", "hip": "hip"}
_THREADED = re.compile(r"#\s*pragma\s+omp|std::j?thread|std::async|pthread_create|std::execution::par")
_OPTIONS = {
    "ASAN_OPTIONS": f"halt_on_error=0:detect_leaks=0:detect_stack_use_after_return=1:hard_rss_limit_mb={MEMORY_MB}",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "TSAN_OPTIONS": f"report_bugs=1:memory_limit_mb={MEMORY_MB}",
    "OMP_NUM_THREADS": THREADS,
}


@dataclass(frozen=True)
class Sanitized:
    """What came of it."""

    tools: list[str]
    rounds: int
    """In which it ran under every tool."""
    findings: list[SanitizerFinding] = field(default_factory=list[SanitizerFinding])
    build: CompileResult | None = None
    """The build that failed, if one did."""
    ended: str = ""
    """How the solution ended its process where no sanitizer said why."""
    skipped: str = ""
    """Why it was not run: no emulation of what it uses."""


def missing(toolkit: str) -> str:
    """Empty when solutions of the toolkit can be sanitized here, else what to install."""
    if toolkit == "cpp":
        return get_toolkit("cpp").missing()
    if toolkit == "opencl":
        return "" if shutil.which("oclgrind") else "oclgrind: `apt install oclgrind`"
    if toolkit in DIALECTS:
        return get_toolkit(toolkit).missing()
    known = "there is one for cpp, opencl, cuda and hip; what a triton kernel reads out of bounds, every check names"
    return f"a sanitizer for {toolkit} solutions: {known}"


async def sanitized(task: Task, solution: Solution, builds: Path, limit_s: float = LIMIT_S) -> Sanitized:
    """The defects that show in the task's correctness rounds, until there are enough of them."""
    if solution.binding:
        return Sanitized(tools=[], rounds=0, skipped=BOUND)
    lacks = missing(solution.toolkit)
    if lacks:
        raise ToolkitUnavailable(f"mode sanitize needs {lacks}")
    rounds = rounds_of(task)
    with TemporaryDirectory(prefix="kernel-lab-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # whoever runs in a box may be another user
        inputs = await recorded(task, rounds, folder)
        seen = Sanitized(tools=[], rounds=len(rounds))
        if solution.toolkit in DIALECTS:
            return await _emulated(task, solution, builds, list(zip(rounds, inputs, strict=True)), folder, seen)
        for watch in _watches(solution):
            seen = await _under(
                watch, task, solution, builds, list(zip(rounds, inputs, strict=True)), folder, seen, limit_s
            )
            if seen.build or seen.ended:
                return seen
        return seen


async def _emulated(
    task: Task,
    solution: Solution,
    builds: Path,
    rounds: Sequence[tuple[Workload, Path]],
    folder: Path,
    seen: Sanitized,
) -> Sanitized:
    """What the emulation's own checks see; the device's compiler has the first word."""
    build = await get_toolkit(solution.toolkit).compile(task, solution, builds)
    if not build.ok:
        return replace(seen, build=build)
    found = await simt_check.watched(task, solution, DIALECTS[solution.toolkit], rounds, builds, folder, ENOUGH)
    tools = [] if found.reason else ["emulation"]
    return replace(seen, tools=tools, findings=found.findings, ended=found.ending, skipped=found.reason)


@dataclass(frozen=True)
class Watch:
    """One way to watch a solution run."""

    tool: str
    purpose: Purpose
    flags: tuple[str, ...] = ()
    """Of the driver."""


def _watches(solution: Solution) -> list[Watch]:
    if solution.toolkit == "opencl":
        return [Watch("oclgrind", "run")]
    both = [Watch("asan and ubsan", "sanitize", ("-g", "-fsanitize=address,undefined"))]
    if any(_THREADED.search(text) for text in solution.sources.values()):
        both.append(Watch("tsan", "races", ("-g", "-fsanitize=thread", "-rdynamic", "-fopenmp")))
    return both


async def _under(
    watch: Watch,
    task: Task,
    solution: Solution,
    builds: Path,
    rounds: Sequence[tuple[Workload, Path]],
    folder: Path,
    seen: Sanitized,
    limit_s: float,
) -> Sanitized:
    build = await get_toolkit(solution.toolkit).compile(task, solution, builds, watch.purpose)
    if not build.artifact:
        return replace(seen, build=build)
    more = {"omp_order.cpp": OMP_ORDER.read_text(encoding="utf-8")} if watch.purpose == "races" else {}
    native = solution.toolkit == "cpp"
    driver = await built_driver(task, solution, builds, watch.flags, more) if native else None
    findings, ended = list(seen.findings), ""
    for one, inputs in rounds:
        output, log = await _run(driver, build.artifact, inputs, folder, limit_s)
        found = sanitizer_reports.native(log, solution.sources) if native else sanitizer_reports.oclgrind(log)
        findings += [finding.model_copy(update={"round": one.uuid}) for finding in found]
        findings = sanitizer_reports.once(findings)
        if DONE not in output.output and not found:
            ended = f"in round {one.uuid} the solution {last_words(output)}"
            break
        if len(findings) >= ENOUGH:
            break
    return replace(seen, tools=[*seen.tools, watch.tool], findings=findings, ended=ended)


async def _run(
    driver: Path | None, artifact: Path, inputs: Path, folder: Path, limit_s: float
) -> tuple[process.Completed, str]:
    """One call under the tool: what was printed, and the tool's report."""
    if driver:
        with room(folder, [driver, artifact, inputs]) as own:
            environment = child_environment(own.outside) | _OPTIONS
            command = [str(driver), str(artifact), str(inputs)]
            done = await replace(own, address_space=False).run(command, environment, limit_s)
            return done, done.output
    with room(folder, [inputs, *map(Path, surroundings()["visible"])]) as own:
        return await _run_opencl(own, artifact, inputs, folder, limit_s)


async def _run_opencl(
    own: Room, artifact: Path, inputs: Path, folder: Path, limit_s: float
) -> tuple[process.Completed, str]:
    files = {str(file.relative_to(artifact)): file for file in artifact.rglob("*") if file.is_file()}
    texts = {name: file.read_text(encoding="utf-8") for name, file in files.items()}
    write_sources(own.outside, {**texts, CALL.name: CALL.read_text(encoding="utf-8")})
    options = ["--data-races", "--max-errors", MOST_ERRORS, "--log", str(own.inside / OCLGRIND_LOG)]
    command = [str(shutil.which("oclgrind")), *options, str(python_inside()), CALL.name, str(inputs)]
    done = await own.run(command, child_environment(own.outside), limit_s)
    logs = own.collect(folder, OCLGRIND_LOG)
    if not logs and DONE not in done.output:
        raise HarnessError(f"oclgrind did not run: it {last_words(done)}")
    return done, logs[0].read_text(encoding="utf-8", errors="replace") if logs else ""
