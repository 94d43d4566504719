"""What is read and written without measuring: tasks, lessons, history, runs, roles, devices."""

import json
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from functools import cached_property
from typing import TYPE_CHECKING

from mcp_server import descriptions, lessons
from mcp_server.budgets import Caps
from mcp_server.callers import Caller, Callers
from mcp_server.excerpts import clip
from mcp_server.reading import json_mapping
from mcp_server.schema import (
    DevicesAnswer,
    HistoryAnswer,
    HistoryLine,
    LessonAdded,
    LessonLine,
    LessonsAnswer,
    RoleAnswer,
    RunAnswer,
    TaskDescription,
    TaskList,
)
from mcp_server.workspace import Workspace
from toolkits.core import device
from toolkits.core.errors import InvalidInput, LabError
from toolkits.core.schema import Lesson
from toolkits.core.toolkit import available, get_toolkit

if TYPE_CHECKING:
    from mcp_server.roles import Roles

MAX_LESSON = 8_000
MAX_HISTORY = 7_000
"""Characters of one answer; the rest is read by the next call."""
MAX_EVENTS = 200
MAX_NOTE = 4_000
"""Characters of a role's note: every later reader of the history pays for it."""


class Catalogue:
    """The part of the lab that keeps and finds things."""

    def __init__(
        self, workspace: Workspace, callers: Callers, url: str = "", keys: dict[str, str] | None = None
    ) -> None:
        self.workspace = workspace
        self.callers = callers
        self.ledger = callers.ledger
        self.url = url
        """Where this server is reached over HTTP; empty over stdio."""
        self.keys = keys or {}
        """Of models; taken out of the environment of this server."""
        self.listen: Callable[[], AbstractAsyncContextManager[str]] | None = None
        """Opens an address for roles where there is none yet."""
        self._listening = AsyncExitStack()

    async def close(self) -> None:
        if "_roles" in self.__dict__:
            await self._roles.close()
        await self._listening.aclose()

    @cached_property
    def _roles(self) -> "Roles":
        from mcp_server.keys import Secrets  # only now: the start of a server does not pay for it
        from mcp_server.role_means import Connection, Means
        from mcp_server.roles import Roles

        async def connection() -> Connection:
            if not self.url and self.listen:
                self.url = await self._listening.enter_async_context(self.listen())
            return Connection(url=self.url, root=self.workspace.root)

        secrets = Secrets(self.keys)
        for token in self.callers.tokens:
            secrets.add(token)
        return Roles(Means(self.workspace, self.ledger, self.keys, secrets), connection)

    # --- tasks ------------------------------------------------------------------------------------------------------

    async def list_tasks(self) -> TaskList:
        return TaskList(tasks=[descriptions.task_line(self.workspace.task(name)) for name in self.workspace.tasks()])

    async def describe_task(self, caller: Caller, task: str) -> TaskDescription:
        wanted = self.workspace.task(task)
        self.note_read(caller, f"task:{task}")
        return descriptions.described(
            wanted,
            [
                descriptions.solution_line(name, folder, self.workspace.solution(wanted, name))
                for name, folder in self.workspace.solutions(wanted).items()
            ],
        )

    async def devices(self) -> DevicesAnswer:
        from toolkits.core import profiling  # only now: the start of a server does not pay for it

        return DevicesAnswer(
            devices=await device.all_devices(),
            toolkits={name: get_toolkit(name).missing() for name in available()},
            profilers=profiling.profilers(),
        )

    # --- lessons ----------------------------------------------------------------------------------------------------

    async def read_lessons(self, caller: Caller, query: str = "", slug: str = "", limit: int = 5) -> LessonsAnswer:
        """One lesson by its slug, or those that fit the query; the best in full."""
        found = [lessons.get(self.workspace, slug)] if slug else lessons.search(self.workspace, query, limit)
        for lesson in found[:1]:
            self.note_read(caller, lesson.slug)
        return LessonsAnswer(
            lessons=[LessonLine(slug=one.slug, title=one.title, symptom=one.symptom) for one in found],
            text=clip(lessons.render(found[0]), MAX_LESSON) if found else "no lesson fits; try fewer words",
        )

    async def add_lesson(self, caller: Caller, lesson: Lesson) -> LessonAdded:
        path = lessons.add(self.workspace, lesson)
        self.ledger.append(caller.run, "lesson_added", {"slug": lesson.slug, "title": lesson.title}, caller.role_id)
        return LessonAdded(lesson=lesson, path=str(path))

    # --- runs and history -------------------------------------------------------------------------------------------

    async def open_run(self, caller: Caller, run: str, task: str, config: str) -> RunAnswer:
        """Create a run, or resume it; from now on the administrator acts for it."""
        caller.require_admin("open a run")
        self.workspace.task(task)
        folder = self.workspace.run_folder(run)
        row, created = self.ledger.open_run(run, task, json_mapping(config, "config"))
        self.callers.admin_run = run
        spent = self.ledger.spent(run)
        return RunAnswer(
            run=run,
            task=row.task,
            folder=str(folder),
            created=created,
            config=row.config,
            finished=row.finished,
            evaluations=self.ledger.count_evaluations(run),
            spent_usd=spent.usd,
            spent_tokens=spent.tokens,
        )

    async def read_history(
        self, caller: Caller, run: str = "", after: int = 0, limit: int = 50, kinds: Sequence[str] = ()
    ) -> HistoryAnswer:
        """Events after `after`, as many as one answer holds."""
        run = run or caller.run
        wanted = min(max(limit, 1), MAX_EVENTS)
        rows = self.ledger.history(run, after, wanted + 1, kinds)
        events = _fitting(rows[:wanted])
        self.note_read(caller, "history")
        last = events[-1].seq if events else after
        return HistoryAnswer(run=run, events=events, next_after=last, more=len(events) < len(rows))

    async def write_history(self, caller: Caller, kind: str, body: str) -> HistoryLine:
        """Add an event to the caller's run; a role writes notes only."""
        if not caller.admin and kind != "note":
            raise LabError(f"only kind 'note' may be written here, not {kind!r}: the lab writes the others itself")
        if not caller.admin and len(body) > MAX_NOTE:
            raise InvalidInput(f"the note has {len(body)} characters, {MAX_NOTE} are the most: put the rest in a file")
        return self.ledger.append(caller.run, kind, json_mapping(body, "body"), caller.role_id)

    # --- roles ------------------------------------------------------------------------------------------------------

    async def spawn_role(
        self,
        caller: Caller,
        name: str,
        charter_text: str,
        agent: str = "tuner",
        team: int = 1,
        caps: Caps | None = None,
    ) -> RoleAnswer:
        """Start a role; what a role starts is its helper, in its team and within its budget."""
        if caller.role and caller.role.parent:
            raise LabError("a helper may not start roles: do the work, or say in your summary which role is missing")
        run = caller.run or self._own_run(charter_text)
        team = caller.role.team if caller.role else team
        return await self._roles.spawn(run, name, charter_text, agent, team, caps, caller.role)

    def _own_run(self, charter_text: str) -> str:
        """Outside any run, the roles on a task share one that a person opened by starting the first of them."""
        from mcp_server import charter

        task = charter.parse(charter_text).task
        if not task:
            raise InvalidInput("the charter's front matter must name the `task`: roles outside a run need it")
        run = f"by-hand-{self.workspace.task(task).name}"
        self.ledger.open_run(run, task, {})
        return run

    async def wait_role(self, role: str, wait_s: float = 45.0) -> RoleAnswer:
        return await self._roles.wait(role, min(max(wait_s, 0.0), 50.0))

    async def stop_role(self, caller: Caller, role: str) -> RoleAnswer:
        if caller.role and caller.role_id not in (role, self.ledger.role(role).parent):
            raise LabError("a role may stop only itself and its helpers")
        return await self._roles.stop(role)

    def note_read(self, caller: Caller, what: str) -> None:
        """What a role has opened is checked against its charter when its turn ends."""
        if caller.role:
            self.ledger.note_read(caller.run, caller.role_id, what)


def _fitting(rows: list[HistoryLine]) -> list[HistoryLine]:
    """The first rows that fit into one answer, at least one."""
    room = MAX_HISTORY
    for count, row in enumerate(rows):
        room -= len(json.dumps(row.body)) + 80
        if room < 0:
            return rows[: max(count, 1)]
    return rows
