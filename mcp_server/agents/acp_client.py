"""The lab's side of the Agent Client Protocol: tells what an agent reports, answers what it asks."""

from typing import Any

from acp import RequestError
from acp.schema import (
    AgentMessageChunk,
    AllowedOutcome,
    DeniedOutcome,
    PermissionOption,
    ReadTextFileResponse,
    RequestPermissionResponse,
    TextContentBlock,
    ToolCallProgress,
    ToolCallStart,
    ToolCallUpdate,
    UsageUpdate,
    WriteTextFileResponse,
)

from mcp_server.agents.acp_permission import allowed, choice, is_lab_tool
from mcp_server.agents.own_program import RESULT_CHARACTERS, one_line, tell
from mcp_server.agents.worktree_files import WorktreeFiles
from toolkits.core.errors import LabError

ENDED = ("completed", "failed")


class LabClient:
    """One session's reports. `text` is what the agent said since its last call, `usd` what its session has cost."""

    def __init__(self, files: WorktreeFiles) -> None:
        self._files = files
        self._titles: dict[str, str] = {}
        self._live = False
        self._usd_before = 0.0
        self.text = ""
        self.rejected = False
        """Whether something was not permitted since it last said anything."""
        self.worked = False
        """Whether it has called the lab."""
        self.usd: float | None = None
        """Of the whole session; None: never told."""

    def go(self, usd_before: float) -> None:
        """The attempt begins: all updates so far were an old session, played back, which had cost so much."""
        self._live = True
        self._usd_before = usd_before

    @property
    def usd_here(self) -> float | None:
        """Of this attempt."""
        return None if self.usd is None else max(self.usd - self._usd_before, 0.0)

    async def session_update(self, session_id: str, update: object, **_: Any) -> None:
        if isinstance(update, UsageUpdate):
            self._cost(update)
        if not self._live:
            return
        match update:
            case AgentMessageChunk(content=TextContentBlock(text=text)):
                self.text += text
                self.rejected = False
            case ToolCallStart():
                self._called(update.tool_call_id, update.title)
            case ToolCallProgress(status=status) if status in ENDED:
                title = self._titles.get(update.tool_call_id, "")
                tell("tool_result", tool=title, outcome=status, text=one_line(_said(update), RESULT_CHARACTERS))
            case _:
                pass

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        allow = allowed(tool_call, self._files)
        self.rejected = self.rejected or not allow
        if not allow:
            tell("note", text=f"not permitted: {tool_call.kind or 'other'} {tool_call.title or ''}")
        if option := choice(options, allow):
            return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=option))
        return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))

    async def read_text_file(
        self, session_id: str, path: str, line: int | None = None, limit: int | None = None, **_: Any
    ) -> ReadTextFileResponse:
        try:
            lines = self._files.inside(path).read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
        except (LabError, OSError) as error:
            raise RequestError(RequestError.resource_not_found(path).code, str(error)) from error
        start = max((line or 1) - 1, 0)
        return ReadTextFileResponse(content="".join(lines[start : None if limit is None else start + limit]))

    async def write_text_file(self, session_id: str, path: str, content: str, **_: Any) -> WriteTextFileResponse:
        try:
            self._files.write_file(path, content)
        except LabError as error:
            raise RequestError(RequestError.invalid_params().code, str(error)) from error
        return WriteTextFileResponse()

    def _called(self, id: str, title: str) -> None:
        self._titles[id] = title
        self.text = ""
        self.worked = self.worked or is_lab_tool(title)
        tell("tool_call", tool=title)

    def _cost(self, update: UsageUpdate) -> None:
        if update.cost is None or update.cost.currency != "USD":
            return
        self.usd = update.cost.amount
        if self._live:
            tell("cost", usd_total=self.usd_here)


def _said(update: ToolCallProgress) -> str:
    return " ".join(
        part.content.text
        for part in update.content or []
        if part.type == "content" and isinstance(part.content, TextContentBlock)
    )
