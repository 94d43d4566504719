"""The tools. Each is a signature, a docstring and one call; what they do is in lab.py and catalogue.py."""

from importlib.metadata import version
from typing import Annotated

from mcp.server import MCPServer
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import TokenVerifier
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import Context
from mcp.types import CallToolResult
from pydantic import Field

from mcp_server.answers import AnyJobAnswer
from mcp_server.callers import Caller
from mcp_server.guides import add_guides, prompt_text
from mcp_server.lab import Lab
from mcp_server.schema import (
    BenchmarkAnswer,
    CompileAnswer,
    DevicesAnswer,
    HistoryAnswer,
    HistoryLine,
    LessonAdded,
    LessonsAnswer,
    ProfileAnswer,
    RoleAnswer,
    RunAnswer,
    TaskDescription,
    TaskList,
)
from mcp_server.tooling import READ, START, WORK, reporter, shown, tool
from toolkits.core.errors import LabError
from toolkits.core.schema import Lesson, Mode

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


def build_server(lab: Lab, verifier: TokenVerifier | None = None) -> MCPServer:
    """The lab as an MCP server; with a verifier every HTTP request needs a bearer token."""
    tools = Tools(lab)
    server = MCPServer(
        "kernel-lab",
        title="kernel-lab",
        version=version("kernel-lab"),
        instructions=prompt_text("instructions"),
        tools=[
            tool(tools.compile, WORK),
            tool(tools.benchmark, WORK),
            tool(tools.profile, WORK),
            tool(tools.get_result, READ),
            tool(tools.cancel, WORK),
            tool(tools.devices, READ),
            tool(tools.list_tasks, READ),
            tool(tools.describe_task, READ),
            tool(tools.read_lessons, READ),
            tool(tools.add_lesson, START),
            tool(tools.read_history, READ),
            tool(tools.write_history, START),
            tool(tools.open_run, WORK),
            tool(tools.spawn_role, WORK),
            tool(tools.wait_role, READ),
            tool(tools.stop_role, WORK),
        ],
        token_verifier=verifier,
        auth=_bearer() if verifier else None,
        log_level="WARNING",
    )
    add_guides(server, lab)
    return server


class Tools:
    """A method a tool: its signature is the schema, its docstring the description."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab

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

    async def devices(self) -> Annotated[CallToolResult, DevicesAnswer]:
        """The devices, toolkits and profilers of this machine, and what is missing to use them."""
        return shown(await self._lab.devices())

    async def list_tasks(self) -> Annotated[CallToolResult, TaskList]:
        """The kernels to be written here, a line each."""
        return shown(await self._lab.list_tasks())

    async def describe_task(self, task: TaskName) -> Annotated[CallToolResult, TaskDescription]:
        """All that a kernel's author must know: mathematics, signature, tensors, checks, workloads."""
        return shown(await self._lab.describe_task(self._caller(), task))

    async def read_lessons(
        self,
        query: Annotated[str, Field(description="Words: a symptom, a cause code, a technique. Empty: all.")] = "",
        slug: Annotated[str, Field(description="One lesson, `topic/name`, in full.")] = "",
        limit: Annotated[int, Field(ge=1, le=50)] = 5,
    ) -> Annotated[CallToolResult, LessonsAnswer]:
        """Find lessons by words, best first with the best in full, or read one by its slug."""
        return shown(await self._lab.read_lessons(self._caller(), query, slug, limit))

    async def add_lesson(
        self,
        slug: Annotated[str, Field(description="`topic/name`, lower case with hyphens.")],
        title: str,
        symptom: Annotated[str, Field(description="What one sees.")],
        cause: Annotated[str, Field(description="Why it is so.")],
        remedy: Annotated[str, Field(description="What to do.")],
        evidence: Annotated[tuple[str, ...], Field(description="Evaluation ids, or how it was verified.")] = (),
        language: Annotated[tuple[str, ...], Field(description="Toolkits that it applies to.")] = (),
        op: Annotated[tuple[str, ...], Field(description="Kinds of kernels that it applies to.")] = (),
    ) -> Annotated[CallToolResult, LessonAdded]:
        """Keep something learned that holds beyond this task, for later runs and other people."""
        applies = {name: list(values) for name, values in (("language", language), ("op", op)) if values}
        lesson = Lesson(
            slug=slug,
            title=title,
            applies_to=applies,
            symptom=symptom,
            cause=cause,
            remedy=remedy,
            evidence=list(evidence),
        )
        return shown(await self._lab.add_lesson(self._caller(), lesson))

    async def read_history(
        self,
        run: Annotated[str, Field(description="Name of a run; empty: your own.")] = "",
        after: Annotated[int, Field(ge=0, description="Only events with a higher seq.")] = 0,
        limit: Annotated[int, Field(ge=1, le=200)] = 50,
        kinds: Annotated[tuple[str, ...], Field(description="Only these, such as evaluation or note; none: all.")] = (),
    ) -> Annotated[CallToolResult, HistoryAnswer]:
        """What happened in a run, in order: evaluations with their results, notes, roles, generations.

        Read on with after = next_after while `more` is true."""
        return shown(await self._lab.read_history(self._caller(), run, after, limit, kinds))

    async def write_history(self, kind: str, body: JsonText) -> Annotated[CallToolResult, HistoryLine]:
        """Add an event to your run's history. A role may add kind "note": what it tried, found or needs."""
        return shown(await self._lab.write_history(self._caller(), kind, body))

    async def open_run(
        self,
        run: Annotated[str, Field(description="Name of the run, which becomes a folder.")],
        task: TaskName,
        config: JsonText,
    ) -> Annotated[CallToolResult, RunAnswer]:
        """Create a run, or resume the one of that name; its config is frozen at creation. Administrator only."""
        return shown(await self._lab.open_run(self._caller(), run, task, config))

    async def spawn_role(
        self,
        name: Annotated[str, Field(description="Name of the role in its team; a running one of that name is joined.")],
        charter: Annotated[
            str, Field(description="Markdown with YAML front matter (task, settings): what the role does.")
        ],
        agent: Annotated[
            str, Field(description="What plays the role: tuner, replay, or an installed agent.")
        ] = "tuner",
        team: Annotated[int, Field(ge=1)] = 1,
        evaluations: Annotated[int, Field(ge=0, description="Cap on its benchmarks; 0: none.")] = 0,
        minutes: Annotated[float, Field(ge=0, description="Cap on its wall time; 0: none.")] = 0,
        usd: Annotated[float, Field(ge=0, description="Cap on its spend; 0: none.")] = 0,
    ) -> Annotated[CallToolResult, RoleAnswer]:
        """Start an agent under a charter, with its own folder, token and budget. Returns at once: use wait_role."""
        return shown(await self._lab.spawn_role(self._caller(), name, charter, agent, team, evaluations, minutes, usd))

    async def wait_role(
        self, role: Annotated[str, Field(description="Id that spawn_role gave.")], wait_s: WaitS = 45
    ) -> Annotated[CallToolResult, RoleAnswer]:
        """Wait until a role ends, at most wait_s: its state, evaluations, best verified speedup and spend."""
        return shown(await self._lab.wait_role(role, wait_s))

    async def stop_role(
        self,
        role: Annotated[str, Field(description="Id that spawn_role gave.")],
    ) -> Annotated[CallToolResult, RoleAnswer]:
        """End a role and every process of it; what it recorded stays."""
        return shown(await self._lab.stop_role(self._caller(), role))

    def _caller(self) -> Caller:
        """Whom the request's token names; without HTTP, whom the environment names."""
        access = get_access_token()
        if access is None:
            return self._lab.callers.local()
        if known := self._lab.callers.caller(access.token):
            return known
        raise LabError("your role has ended: the lab takes no more calls under its token")


def _bearer() -> AuthSettings:
    """Tokens are minted by the lab itself, so there is no authorization server to point at."""
    return AuthSettings.model_validate(
        {"issuer_url": "http://127.0.0.1/", "resource_server_url": None, "validate_token_resource": False}
    )
