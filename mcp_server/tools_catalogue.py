"""The tools that read and write without measuring. Each is a signature, a docstring and one call."""

from typing import Annotated

from mcp.types import CallToolResult
from pydantic import Field

from mcp_server.plots import plot
from mcp_server.schema import (
    DevicesAnswer,
    HistoryAnswer,
    HistoryLine,
    LessonAdded,
    LessonsAnswer,
    RunAnswer,
    TaskDescription,
    TaskList,
)
from mcp_server.tool_arguments import JsonText, TaskName
from mcp_server.tool_set import ToolSet
from mcp_server.tooling import pictured, shown
from toolkits.core.schema import Lesson


class CatalogueTools(ToolSet):
    """Tasks, lessons, history, runs and devices."""

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

    async def plot(
        self,
        of: Annotated[str, Field(description="Id of an evaluation, or name of a run; empty: your own run.")] = "",
    ) -> CallToolResult:
        """A picture: of a run every evaluation with its interval and the best so far; of an evaluation its workloads.

        Workloads are shown by speedup and by the share of what the device could do. The figures are in read_history
        and get_result too: plot where a look at the whole helps, and to show a person."""
        return pictured(await plot(self._lab, self._caller(), of))

    async def open_run(
        self,
        run: Annotated[str, Field(description="Name of the run, which becomes a folder.")],
        task: TaskName,
        config: JsonText,
    ) -> Annotated[CallToolResult, RunAnswer]:
        """Create a run, or resume the one of that name; its config is frozen at creation. Administrator only."""
        return shown(await self._lab.open_run(self._caller(), run, task, config))
