"""How a function becomes an MCP tool here: closed arguments, readable errors, small structured and text results."""

import functools
import json
from base64 import b64encode
from collections.abc import Awaitable, Callable
from difflib import get_close_matches
from typing import Any, ParamSpec

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import CallToolResult, ImageContent, TextContent, ToolAnnotations
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from mcp_server.feedback import MAX_BYTES, clipped, fitted
from mcp_server.jobs import Report
from mcp_server.schema import JobAnswer
from mcp_server.texts import text_of
from mcp_server.wire import slim
from toolkits.core.errors import LabError
from toolkits.core.schema import Record

P = ParamSpec("P")

READ = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
WORK = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
"""Uses the device or writes: clients must not run these side by side, and need no approval for them."""
START = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False)
"""Twice is not the same as once."""


class ClosedTool(Tool):
    """Refuses unknown argument names, which the SDK drops silently, and says in a line what does not fit."""

    async def run(self, arguments: dict[str, Any], context: Context[Any, Any], convert_result: bool = False) -> Any:
        try:
            _check_text(arguments)
            self.fn_metadata.validate_arguments(arguments)
        except ValidationError as error:
            raise ToolError(_explained(self.fn_metadata.arg_model, error)) from error
        return await super().run(arguments, context, convert_result)


def tool(function: Callable[P, Awaitable[CallToolResult]], annotations: ToolAnnotations) -> Tool:
    """The tool that `function` is: closed arguments, LabErrors that the caller can read."""
    made = ClosedTool.from_function(_readable(function), annotations=annotations)
    open_model = made.fn_metadata.arg_model

    class Closed(open_model):
        model_config = ConfigDict(extra="forbid", defer_build=True, title=made.name)

    made.fn_metadata.arg_model = Closed
    made.parameters["additionalProperties"] = False
    return made


def shown(answer: Record) -> CallToolResult:
    """Some clients show only the structured half, others only the text: both say the same, in at most 4 KB of a job."""
    answer = fitted(answer) if isinstance(answer, JobAnswer) else answer
    return CallToolResult(content=[TextContent(type="text", text=text_of(answer))], structured_content=slim(answer))


def pictured(png: bytes) -> CallToolResult:
    """An image alone: beside a structured half, some clients drop it."""
    return CallToolResult(content=[ImageContent(type="image", data=b64encode(png).decode(), mime_type="image/png")])


def reporter(context: Context) -> Report:
    """Progress keeps impatient clients waiting."""

    async def report(seconds: float, doing: str) -> None:
        await context.report_progress(seconds, None, f"{doing}, {seconds:.0f} s")

    return report


def _readable(function: Callable[P, Awaitable[CallToolResult]]) -> Callable[P, Awaitable[CallToolResult]]:
    """The SDK hides the text of every exception but ToolError."""

    @functools.wraps(function)
    async def call(*args: P.args, **kwargs: P.kwargs) -> CallToolResult:
        try:
            return await function(*args, **kwargs)
        except LabError as error:
            raise ToolError(clipped(str(error), MAX_BYTES)) from error

    return call


def _check_text(arguments: dict[str, Any]) -> None:
    """JSON can carry half of a surrogate pair, which no file, database or terminal accepts."""
    try:
        json.dumps(arguments, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ToolError(
            "an argument holds half of a surrogate pair, which is no text: send whole characters"
        ) from error


def _explained(arguments: type[BaseModel], error: ValidationError) -> str:
    return "; ".join(_problem(list(arguments.model_fields), problem) for problem in error.errors(include_url=False))


def _problem(names: list[str], problem: ErrorDetails) -> str:
    name = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        near = get_close_matches(name, names, n=1)
        meant = f"did you mean `{near[0]}`?" if near else f"the arguments are {', '.join(names) or 'none'}"
        return f"unknown argument `{name}`: {meant}"
    if problem["type"] == "missing":
        return f"argument `{name}` is missing"
    return f"argument `{name}`: {problem['msg']}, not {problem['input']!r:.80}"
