"""The tools that build, judge and profile. Each is a signature, a docstring and one call."""

from typing import Annotated

from mcp.server.mcpserver import Context
from mcp.types import CallToolResult
from pydantic import Field

from mcp_server.answers import AnyJobAnswer
from mcp_server.schema import BenchmarkAnswer, CompileAnswer, ProfileAnswer
from mcp_server.tool_arguments import (
    Against,
    AnyTask,
    Baseline,
    Command,
    Fresh,
    Path,
    Targets,
    TaskName,
    WaitS,
    Workload,
    Workloads,
)
from mcp_server.tool_set import ToolSet
from mcp_server.tooling import reporter, shown
from toolkits.core.schema import Mode


class MeasuringTools(ToolSet):
    """What a kernel's author calls again and again."""

    async def compile(
        self, path: Path, context: Context, task: AnyTask = "", targets: Targets = (), wait_s: WaitS = 45
    ) -> Annotated[CallToolResult, CompileAnswer]:
        """Build a solution without running it. Gives the compiler's diagnostics, the first error first.

        GPU kernels are also reported on, for each target: registers, spills, shared memory, occupancy, machine code,
        launches that would fail. Builds are cached by content, so asking again is free."""
        return shown(await self._lab.compile(self._caller(), task, path, wait_s, reporter(context), targets))

    async def benchmark(
        self,
        task: TaskName,
        path: Path,
        context: Context,
        mode: Mode = "full",
        baseline: Baseline = "",
        fresh: Fresh = False,
        workloads: Workloads = None,
        wait_s: WaitS = 45,
    ) -> Annotated[CallToolResult, BenchmarkAnswer]:
        """Build a solution, check it against the reference on secret inputs, time it against the baseline, record it.

        mode "check" stops after correctness; "full" also times every workload in interleaved pairs with the baseline;
        "sanitize" looks for memory errors, races and undefined behaviour (cpp, opencl), and compares and times nothing.
        Failure is a result: status, stage, cause code, worst element, hint. The speedup has a 99 % interval, and
        verdict is faster, slower, tie or inconclusive. Not done within wait_s: call get_result with `job`."""
        return shown(
            await self._lab.benchmark(
                self._caller(), task, path, mode, baseline, fresh, wait_s, reporter(context), workloads
            )
        )

    async def profile(
        self,
        context: Context,
        task: str = "",
        path: str = "",
        workload: Workload = "",
        command: Command = (),
        against: Against = "",
        wait_s: WaitS = 45,
    ) -> Annotated[CallToolResult, ProfileAnswer]:
        """Find what limits a solution (task and path), or any program (command), or digest a report made elsewhere.

        A path without a task is a report: .ncu-rep, ncu CSV, rocprofv3 (CSV, JSON, .db), perf stat, callgrind.out.
        Gives a verdict a GPU kernel; `against` compares with an earlier report.

        Gives counters, the hottest source lines and a one-line verdict with its evidence; a missing counter was not
        measured. Profiling slows a program up to 50 times, so times here are no benchmark."""
        return shown(
            await self._lab.profile(
                self._caller(), task, path, workload, command, wait_s, reporter(context), against=against
            )
        )

    async def get_result(
        self,
        id: Annotated[str, Field(description="Id of a job, or of an evaluation.")],
        context: Context,
        wait_s: WaitS = 45,
    ) -> Annotated[CallToolResult, AnyJobAnswer]:
        """Wait for a job and give its answer, or give a recorded evaluation by its id.

        The answer has the fields of compile, benchmark or profile, as `kind` says; log_path names the full record."""
        return shown(await self._lab.get_result(self._caller(), id, wait_s, reporter(context)))

    async def cancel(
        self,
        job: Annotated[str, Field(description="Id of a job.")],
    ) -> Annotated[CallToolResult, AnyJobAnswer]:
        """End a job that still runs; nothing of it is recorded. A job that has ended stays as it is."""
        return shown(await self._lab.cancel(self._caller(), job))
