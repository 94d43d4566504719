"""What an open model may call: every tool of the lab, and the files of its worktree. Knows no model and no history."""

from typing import Any

import anyio
import httpx2
from mcp import MCPError
from pydantic_ai import FunctionToolset, ModelRetry, RunContext
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.mcp import CallToolFunc, MCPToolset, ToolResult
from pydantic_ai.toolsets import ToolsetTool

from mcp_server.agents.open_model_endings import LabGone
from mcp_server.agents.worktree_files import WorktreeFiles
from toolkits.core.errors import LabError

CONNECT_TIMEOUT_S = 30.0
CALL_TIMEOUT_S = 300.0
"""No tool holds a call longer than its own wait; past this the lab counts as gone."""
LOST = (
    MCPError,
    httpx2.HTTPError,
    OSError,
    RuntimeError,
    TimeoutError,
    anyio.ClosedResourceError,
    anyio.BrokenResourceError,
)
"""What a client raises whose server is not there; each layer has a word of its own for it."""


class LabTools(MCPToolset[object]):
    """The lab over HTTP. Its errors go to the model; that it is gone goes to the loop, as LabGone."""

    def __init__(self, url: str, token: str) -> None:
        super().__init__(  # pyright: ignore[reportUnknownMemberType]  (it allows what may not be installed)
            url,
            id="lab",
            headers={"Authorization": f"Bearer {token}"},
            include_instructions=True,
            tool_error_behavior="failed",
            init_timeout=CONNECT_TIMEOUT_S,
            read_timeout=CALL_TIMEOUT_S,
            process_tool_call=self._call,
        )

    async def _call(
        self, context: RunContext[object], call: CallToolFunc, name: str, arguments: dict[str, Any]
    ) -> ToolResult:
        try:
            return await call(name, arguments)
        except ModelRetry:  # a protocol error: of the call, or of a connection that is no more
            await self.require()
            raise
        except LOST as problem:
            raise LabGone(str(problem) or type(problem).__name__) from problem

    async def require(self) -> None:
        """Raises LabGone unless the lab answers."""
        try:
            await self.client.list_tools()
        except LOST as problem:
            raise LabGone(str(problem) or type(problem).__name__) from problem


class FileTools(FunctionToolset[object]):
    """The worktree. What a caller did wrong is told to the model."""

    def __init__(self, files: WorktreeFiles) -> None:
        super().__init__(
            [files.list_files, files.read_file, files.write_file, files.edit_file], id="files", sequential=True
        )

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[object], tool: ToolsetTool[object]
    ) -> Any:
        try:
            return await super().call_tool(name, tool_args, ctx, tool)
        except LabError as error:
            raise ToolFailed(str(error)) from error
