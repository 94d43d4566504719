"""Triton solutions: compiled for named GPUs and reported on; what runs here is Triton's interpreter, in a worker.

Needs no GPU. Imports no triton itself: that is a child's and the worker's business.
"""

import re
import time
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from shutil import rmtree

from pydantic import ValidationError

from toolkits.core import diagnostics
from toolkits.core.builds import content_key, find, keep_final, work_folder, write_sources
from toolkits.core.errors import InvalidInput, ToolkitUnavailable
from toolkits.core.gpu import amd, arch, device_access, device_build, triton_report
from toolkits.core.gpu.targets import merged
from toolkits.core.gpu.triton_answer import Problem, TritonAnswer, TritonRequest
from toolkits.core.profile_box import room
from toolkits.core.profile_child import dump_arguments, last_words, run_child
from toolkits.core.schema import CompileResult, Diagnostic, Solution, Task
from toolkits.core.toolkit import Purpose, Toolkit
from toolkits.python import check_sources

DEFAULT_TARGETS = ("sm_90", "sm_100", "gfx942", "gfx950")
COMPILE_LIMIT_S = 180.0
TUNING_S = 8.0
SOURCES, ANSWER = "src", "answer.json"
HOST, BESIDE = "triton_host.py", ("triton_stub.py", "triton_bounds.py", "triton_bfloat16.py")
"""What lies beside the solution where it is interpreted."""
GPU = Path(__file__).parent / "core" / "gpu"
INTERPRETED = "run by Triton's interpreter on the CPU: checked, never timed"
WIDENED = (
    f"{INTERPRETED}; it cannot compute in bfloat16: such values are float32 here, and rounded where they are cast or"
    " stored, so that sums and products in bfloat16 are more exact than on a GPU"
)
_BFLOAT16 = re.compile(r"\bb(?:float|f)16\b")


class TritonToolkit:
    """Reports by target, and sources for the interpreter, cached by content, targets and version of Triton."""

    name = "triton"

    def __init__(self, limit_s: float = COMPILE_LIMIT_S, tuning_s: float = TUNING_S) -> None:
        self._limit_s, self._tuning_s = limit_s, tuning_s

    def missing(self) -> str:
        if find_spec("triton"):
            return ""
        return "triton: `pip install 'kernel-lab[triton]'` (290 MB to download, 1 GB on disk)"

    async def compile(self, task: Task, solution: Solution, builds: Path, purpose: Purpose = "run") -> CompileResult:
        """Compile under `builds`, or find the same content already there; both purposes are the same build."""
        _check(solution)
        if missing := self.missing():
            raise ToolkitUnavailable(f"this machine lacks {missing}")
        targets, toolchain = _targets(solution.targets), f"triton {version('triton')}"
        own = [path.read_text(encoding="utf-8") for path in sorted(GPU.glob("triton_*.py"))]
        gpu = await _gpu()
        what = ("triton", solution.id, task.content_hash, targets, toolchain, own)
        key = content_key(*what, device_build.stamp(gpu))
        folder = builds.resolve() / key
        if found := find(folder):
            return found
        started = time.monotonic()
        with work_folder(builds) as work:
            result = await self._built(work, task, solution, targets)
            if gpu and not gpu.stand_in and result.ok:
                result = result.model_copy(update={"host": "", "environment": {}, "artifact": work / SOURCES})
            result = device_build.runs_on(gpu, result)
            took = (time.monotonic() - started) * 1e3
            result = result.model_copy(update={"toolchain": toolchain, "build_ms": took})
            return keep_final(work, folder, result)

    async def _built(self, work: Path, task: Task, solution: Solution, targets: list[str]) -> CompileResult:
        found = check_sources(task, solution)
        result = CompileResult(ok=False, solution=solution.id, toolkit="triton", loads_as="python", host=HOST)
        if any(one.severity == "error" for one in found):
            return result.model_copy(update={"diagnostics": found[: diagnostics.MOST]})
        write_sources(work / SOURCES, {**solution.sources, **_beside(solution)})
        aside = work / "tmp"
        aside.mkdir()
        answer, log = await self._asked(aside, task, solution, work / SOURCES, targets)
        kernels = await triton_report.reports(answer.variants, answer.tuned, aside)
        rmtree(aside)
        said = [*_problems(answer, targets), *triton_report.failures(answer.variants)]
        found = merged([*said, *found], targets, any_target=not solution.targets)
        ok = not any(one.severity == "error" for one in found)
        return result.model_copy(
            update={
                "ok": ok,
                "artifact": work / SOURCES if ok else None,
                "not_timed": WIDENED if _uses_bfloat16(task, solution) else INTERPRETED,
                "environment": {"TRITON_INTERPRET": "1", "TRITON_DEFAULT_FP_FUSION": "1"},
                "diagnostics": found[: diagnostics.MOST],
                "log": log,
                "kernels": kernels,
            }
        )

    async def _asked(
        self, aside: Path, task: Task, solution: Solution, artifact: Path, targets: list[str]
    ) -> tuple[TritonAnswer, str]:
        """What a child in a box compiled: the call is the solution's own code."""
        workload = task.workloads[0]
        arguments = await dump_arguments(task, workload, aside) if _steered(task) else aside / "none"
        arguments.mkdir(exist_ok=True)
        with room(aside, [artifact, arguments]) as own:
            request = TritonRequest(
                task=task,
                workload=workload,
                solution=solution,
                artifact=artifact.resolve(),
                arguments=arguments,
                answer=own.inside / ANSWER,
                tuning_s=self._tuning_s,
                targets=[_triple(target) for target in targets],
            )
            done = await run_child("toolkits.core.gpu.triton_child", request, aside, self._limit_s, own)
            answers = own.collect(aside, ANSWER)
        try:
            answer = TritonAnswer.model_validate_json(answers[0].read_bytes()) if answers else TritonAnswer()
        except ValidationError:
            answer = TritonAnswer(doing="writing its answer")
        if done.returncode != 0:
            doing = answer.doing or "starting"
            where = "compile_timeout: " if done.returncode is None else ""
            problem = Problem(target="", message=f"{where}while {doing} the child {last_words(done)}")
            answer = answer.model_copy(update={"problems": [*answer.problems, problem]})
        return answer, done.output


async def _gpu() -> device_access.Gpu | None:
    """What Triton can launch on here: it does so through torch, whose build must know the device too."""
    torch = version("torch") if find_spec("torch") else "+cpu"
    found = [await device_access.first(api) for api in ("cuda", "hip")]
    return next((gpu for gpu in found if gpu and (gpu.stand_in or not torch.endswith("+cpu"))), None)


def _check(solution: Solution) -> None:
    if solution.flags or solution.tunables:
        raise InvalidInput("a triton solution has neither compiler flags nor tunables: use triton.autotune")
    if solution.plan_entry_point:
        raise InvalidInput("a triton solution has no plan step here: leave out plan_entry_point")
    if clash := {HOST, *BESIDE} & set(solution.sources):
        raise InvalidInput(f"{clash.pop()} is made by the toolkit: call the solution's file something else")


def _beside(solution: Solution) -> dict[str, str]:
    """The files of ours that the worker needs, the host with what it must know of this solution."""
    own = {name: (GPU / name).read_text(encoding="utf-8") for name in (HOST, *BESIDE)}
    own[HOST] = own[HOST].replace('ENTRY = "main.py"', f"ENTRY = {solution.entry_file!r}")
    if any("pointer_type" in text for text in solution.sources.values()):
        own[HOST] = own[HOST].replace("CHECK_BOUNDS = True", "CHECK_BOUNDS = False")
    return own


def _targets(named: Sequence[str]) -> list[str]:
    found: list[str] = []
    for target in named or DEFAULT_TARGETS:
        known = target in amd.AMD
        spelled = target if known else arch.checked_target(target).rstrip("af")
        if not known and not arch.architecture(spelled):
            raise InvalidInput(f"target {target!r} is not known: choose among {', '.join([*arch.NVIDIA, *amd.AMD])}")
        found.append(spelled)
    return list(dict.fromkeys(found))


def _triple(target: str) -> tuple[str, str, int]:
    """What Triton calls it: backend, architecture, threads of a warp."""
    return ("hip", target, amd.WAVE) if target in amd.AMD else ("cuda", target.removeprefix("sm_"), arch.WARP)


def _steered(task: Task) -> bool:
    """Whether the inputs hold sizes, offsets or indices; what floats hold decides nothing about a launch."""
    return any(spec.dtype in ("int32", "int64", "bool") for spec in task.inputs.values())


def _uses_bfloat16(task: Task, solution: Solution) -> bool:
    specs = [*task.inputs.values(), *task.outputs.values()]
    named = any(_BFLOAT16.search(text) for name, text in solution.sources.items() if name.endswith(".py"))
    return named or any(spec.dtype == "bfloat16" for spec in specs)


def _problems(answer: TritonAnswer, targets: Sequence[str]) -> list[Diagnostic]:
    """What the child could not do; a tuned kernel needs one configuration that compiles."""
    compiled = {(variant.kernel, variant.target) for variant in answer.variants}
    tuned_well = {target for target in targets if any(where == target for _, where in compiled)}
    found = [
        Diagnostic(
            severity="warning" if problem.configuration and problem.target in tuned_well else "error",
            message=_told(problem),
            file=problem.file,
            line=problem.line,
        )
        for problem in answer.problems
    ]
    if not answer.variants and not found:
        found.append(Diagnostic(severity="error", message="the call launches no @triton.jit kernel"))
    return found


def _told(problem: Problem) -> str:
    configuration = f" under {problem.configuration}" if problem.configuration else ""
    return f"{problem.message}{configuration} [{problem.target}]" if problem.target else problem.message


TOOLKIT: Toolkit = TritonToolkit()
