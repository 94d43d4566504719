"""The kernel that each toolkit is checked with: built, judged against CUDA's or its own, timed by others, profiled."""

import json
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from bench.gpu_check.report import Section
from mcp_server.folders import read_solution, read_task
from toolkits.core import gpu_profile, process, sanitize
from toolkits.core.device import lease
from toolkits.core.errors import LabError
from toolkits.core.gpu.device_access import Gpu
from toolkits.core.judge.client import Judge
from toolkits.core.judge.request import EvaluationRequest
from toolkits.core.schema import BenchmarkResult, CompileResult, Measurement, Solution, Status, Task, Workload
from toolkits.core.toolkit import get_toolkit

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "kernels"
TASK, WORKLOAD = "rmsnorm", "r750_c1000"
SMALL = Workload(uuid="small", axes={"rows": 24, "cols": 64})
"""What an emulation and an interpreter manage in seconds."""
CHILD_LIMIT_S = 60.0


@dataclass(frozen=True)
class Subject:
    """A built solution."""

    solution: Solution
    build: CompileResult


class Subjects:
    """Builds and judges one solution a toolkit."""

    def __init__(self, judge: Judge, builds: Path, gpu: Gpu) -> None:
        self._judge, self._builds, self._gpu = judge, builds, gpu
        task = read_task(KERNELS / TASK)
        workload = SMALL if gpu.stand_in else next(one for one in task.workloads if one.uuid == WORKLOAD)
        correctness = [{"rows": 7, "cols": 33}] if gpu.stand_in else task.correctness
        key = f"{task.content_hash} {workload.uuid}"
        self.task: Task = task.model_copy(
            update={"workloads": [workload], "correctness": correctness, "content_hash": key}
        )
        self.built: dict[str, Subject] = {}
        self.figures: dict[str, Measurement] = {}

    async def build(self, toolkit: str, section: Section) -> None:
        """As an agent's `compile` would."""
        if missing := get_toolkit(toolkit).missing():
            section.outcome, section.why = "skipped", f"this machine lacks {missing}"
            return
        solution = read_solution(KERNELS / TASK / "solutions" / toolkit, TASK)
        build = await get_toolkit(toolkit).compile(self.task, solution, self._builds)
        if not build.ok:
            section.outcome, section.why = "failed", f"does not build: {build.diagnostics[:1]}"
            return
        if not build.artifact:
            section.outcome, section.why = "skipped", f"built, but nothing here runs it: {build.not_timed}"
            return
        self.built[toolkit] = Subject(solution, build)
        for kernel in build.kernels[:4]:
            section.notes.append(
                f"{kernel.name} on {kernel.target}: {kernel.registers} registers, {kernel.shared_bytes} B shared,"
                f" occupancy {kernel.occupancy}"
            )

    async def judge(self, toolkit: str, section: Section) -> None:
        """Checked and, on a device, timed: against CUDA's solution, or the first there is on that device."""
        subject = self.built.get(toolkit)
        if not subject:
            return
        others = [one for one in self.built.values() if one.build.device == subject.build.device]
        against = others[0] if subject.build.device else subject
        request = EvaluationRequest(
            task=self.task,
            candidate=subject.solution,
            candidate_build=subject.build,
            baseline=against.solution,
            baseline_name=against.solution.toolkit,
            baseline_build=against.build,
        )
        try:
            async with lease(subject.build.device or "cpu"):
                result = await self._judge.evaluate(request, lambda what, share: None)
        except LabError as error:
            section.outcome, section.why = "failed", str(error)
            return
        self._take(toolkit, result, section)

    def _take(self, toolkit: str, result: BenchmarkResult, section: Section) -> None:
        if result.status is not Status.PASSED:
            section.outcome, section.why = "failed", f"{result.status} {result.cause}: {result.detail}"
            return
        section.columns = ("workload", "warm us", "cold us", "graph us", "host us", "wall us", "verdict", "pairs")
        for one in result.measurements:
            self.figures[toolkit] = one
            cold = one.cold.latency_us if one.cold else None
            figures = (one.latency_us, cold, one.graph_us, one.host_us, one.wall_us)
            section.rows.append([one.workload, *map(_us, figures), str(one.verdict), str(one.pairs)])
        section.notes.append(f"clock: {result.clock or result.not_timed}")
        if why := result.host.get("no_graph"):
            section.notes.append(f"no graph: {why}")
        section.notes += [f"warning: {warning}" for warning in result.warnings]

    def child(self, toolkit: str, *more: str) -> list[str]:
        """The command that calls a toolkit's kernel outside of the judge."""
        subject = self.built[toolkit]
        axes = json.dumps(self.task.workloads[0].axes)
        library, function = str(subject.build.artifact), subject.solution.entry_function
        module = ["-m", "bench.gpu_check.timers", subject.build.device, str(KERNELS / TASK), library, function, axes]
        return [sys.executable, *module, *more]

    async def profile(self, toolkit: str, section: Section, folder: Path) -> None:
        """By the vendor's profiler, where it is."""
        if not gpu_profile.profiler() or self._gpu.stand_in:
            section.notes.append("not profiled: ncu or rocprofv3 and a device are needed")
            return
        folder.mkdir()
        limit_s = CHILD_LIMIT_S
        report = await gpu_profile.profile(self.child(toolkit, "--calls", "3"), ROOT, folder, _environment(), limit_s)
        if report:
            section.notes.append(f"profiled by {report.tool}: {report.verdict}")

    async def sanitize(self, toolkit: str, section: Section) -> None:
        """By compute-sanitizer on a device; without, in the emulation."""
        subject = self.built.get(toolkit)
        if not subject:
            return
        tool = shutil.which("compute-sanitizer")
        if tool and not self._gpu.stand_in and self._gpu.name.startswith("cuda"):
            command = [tool, "--error-exitcode", "9", *self.child(toolkit, "--calls", "1")]
            done = await process.run(command, cwd=ROOT, timeout_s=CHILD_LIMIT_S, env=_environment())
            section.notes.append(f"compute-sanitizer: {done.output.strip().splitlines()[-1:]}")
            if done.returncode == 9:
                section.outcome, section.why = "failed", "compute-sanitizer found errors in a shipped kernel"
            return
        if why := sanitize.missing(toolkit):
            section.notes.append(f"not sanitized: {why}")
            return
        seen = await sanitize.sanitized(self.task, subject.solution, self._builds)
        section.notes.append(f"sanitized by {', '.join(seen.tools) or 'nothing'}: {len(seen.findings)} findings")
        if seen.findings:
            section.outcome, section.why = "failed", str(seen.findings[0])

    async def timers(self, section: Section) -> None:
        """Our figures beside those of two other timers, of the same library on the same sizes, in microseconds."""
        figures = ("ours cold", "do_bench", "ours warm", "ours graph", "plain events")
        section.columns = ("kernel", *figures, "cold/do_bench")
        for toolkit in ("cuda", "hip"):
            if toolkit not in self.built or not self.built[toolkit].build.device:
                continue
            done = await process.run(self.child(toolkit), cwd=ROOT, timeout_s=CHILD_LIMIT_S, env=_environment())
            line = done.output.strip().rpartition("\n")[2]
            if done.returncode != 0 or not line.startswith("{"):
                section.outcome, section.why = "failed", f"{toolkit}: {done.output[-400:]}"
                continue
            self._compare(toolkit, json.loads(line), section)
        if not section.rows and section.outcome == "ok":
            section.outcome, section.why = "skipped", "no compiled kernel on a device"

    def _compare(self, toolkit: str, said: dict[str, float], section: Section) -> None:
        ours = self.figures.get(toolkit)
        cold = ours.cold.latency_us if ours and ours.cold else None
        warm, graph = (ours.latency_us, ours.graph_us) if ours else (None, None)
        ratio = f"{cold / said['do_bench_us']:.2f}" if cold else "-"
        figures = [_us(one) for one in (cold, said["do_bench_us"], warm, graph, said["plain_events_us"])]
        section.rows.append([f"{TASK} {toolkit}", *figures, ratio])
        if not said["wrote"]:
            section.outcome, section.why = "failed", "the kernel wrote nothing outside of the judge"


def _us(figure: float | None) -> str:
    return "-" if figure is None else f"{figure:.2f}"


def _environment() -> dict[str, str]:
    return dict(os.environ)
