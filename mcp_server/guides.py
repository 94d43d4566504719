"""Prompts, resources and completions: the doors beside the tools. Whatever they offer, a tool offers too."""

from collections.abc import Iterable
from pathlib import Path

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp.types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    PromptReference,
    ResourceTemplateReference,
)

from mcp_server import lessons
from mcp_server.lab import Lab
from mcp_server.texts import text_of
from toolkits.core.errors import LabError

MAX_COMPLETIONS = 100
"""What the protocol allows."""


def prompt_text(name: str) -> str:
    return (Path(__file__).parent / "prompts" / f"{name}.md").read_text(encoding="utf-8")


def add_guides(server: MCPServer, lab: Lab) -> None:
    _add_prompts(server, lab)
    _add_resources(server, lab)

    @server.completion()
    async def complete(  # pyright: ignore[reportUnusedFunction]
        reference: PromptReference | ResourceTemplateReference,
        argument: CompletionArgument,
        context: CompletionContext | None,
    ) -> Completion:
        known = context.arguments or {} if context else {}
        values = [value for value in _candidates(lab, argument.name, known) if value.startswith(argument.value)]
        return Completion(values=values[:MAX_COMPLETIONS], total=len(values), has_more=len(values) > MAX_COMPLETIONS)


def _add_prompts(server: MCPServer, lab: Lab) -> None:
    @server.prompt()
    def optimise(task: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Make a kernel faster, step by step, with evidence."""
        wanted = lab.workspace.task(task)
        others = [name for name in wanted.variants if name != wanted.start]
        return prompt_text("optimise").format(
            task=task,
            baseline=wanted.baselines[0],
            lessons=", ".join(wanted.lessons) or f"{wanted.op_type} cpp",
            start=wanted.start,
            path=lab.workspace.solutions(wanted).get(wanted.start, ""),
            variants=f" (there are {', '.join(others)})" if others else "",
        )

    @server.prompt()
    def diagnose(task: str, path: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Find out why a solution fails or is slow."""
        return prompt_text("diagnose").format(task=task, path=path)


def _add_resources(server: MCPServer, lab: Lab) -> None:
    @server.resource("kernel-lab://tasks", mime_type="text/plain")
    async def tasks() -> str:  # pyright: ignore[reportUnusedFunction]
        """The kernels to be written here, a line each."""
        return text_of(await lab.list_tasks())

    @server.resource("kernel-lab://tasks/{name}", mime_type="text/plain")
    async def task(name: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """All that a kernel's author must know."""
        try:
            return text_of(await lab.describe_task(lab.callers.local(), name))
        except LabError as error:
            raise ResourceNotFoundError(str(error)) from error

    @server.resource("kernel-lab://lessons/{topic}/{name}", mime_type="text/markdown")
    async def lesson(topic: str, name: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """One lesson in full."""
        try:
            return lessons.render(lessons.get(lab.workspace, f"{topic}/{name}"))
        except LabError as error:
            raise ResourceNotFoundError(str(error)) from error

    @server.resource("kernel-lab://evaluations/{id}", mime_type="application/json")
    async def evaluation(id: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """The whole record of an evaluation."""
        try:
            return lab.ledger.evaluation(id).result.model_dump_json(indent=1)
        except LabError as error:
            raise ResourceNotFoundError(str(error)) from error


def _candidates(lab: Lab, argument: str, known: dict[str, str]) -> Iterable[str]:
    """`name` is a lesson's once a topic is chosen, a task's otherwise."""
    slugs = sorted(lab.workspace.lesson_files())
    if argument == "topic":
        return sorted({slug.split("/")[0] for slug in slugs})
    if argument == "name" and "topic" in known:
        return [slug.split("/")[1] for slug in slugs if slug.startswith(f"{known['topic']}/")]
    if argument in ("task", "name"):
        return lab.workspace.tasks()
    if argument == "path" and known.get("task") in lab.workspace.tasks():
        return lab.workspace.solutions(lab.workspace.task(known["task"]))
    return []
