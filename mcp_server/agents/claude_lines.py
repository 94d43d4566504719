"""The lines of Claude Code's stream, as far as the lab reads them. Shapes only; what they mean is decided elsewhere."""

from typing import Literal

from pydantic import ConfigDict

from mcp_server.agents.agent import Usage
from toolkits.core.schema import Json, Record

SERVER = "lab"
SYNTHETIC = "<synthetic>"
"""Model of the messages that the client writes itself."""


class _Read(Record):
    model_config = ConfigDict(extra="ignore")


class Counts(_Read):
    """Tokens as the vendor counts them; the kinds do not overlap."""

    input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    output_tokens: int | None = None

    def usage(self, model: str) -> Usage:
        return Usage(
            model=model,
            input_tokens=self.input_tokens or 0,
            cache_read_tokens=self.cache_read_input_tokens or 0,
            cache_write_tokens=self.cache_creation_input_tokens or 0,
            output_tokens=self.output_tokens or 0,
        )


class Block(_Read):
    """Part of a message."""

    type: str = ""
    id: str = ""
    name: str = ""
    text: str = ""
    input: Json = {}
    tool_use_id: str = ""
    content: str | list[Json] = ""
    is_error: bool | None = None


class Message(_Read):
    """Of the model, or the results of its calls."""

    id: str = ""
    model: str = ""
    content: str | list[Block] = []
    stop_reason: str | None = None
    usage: Counts | None = None

    @property
    def blocks(self) -> list[Block]:
        return [] if isinstance(self.content, str) else self.content


class Streamed(_Read):
    """An event of the vendor's own stream."""

    type: str = ""
    message: Message = Message()
    usage: Counts | None = None


class Server(_Read):
    name: str
    status: str = ""


class ModelUsage(_Read):
    """What one model was used for since the last result line of this process."""

    inputTokens: int = 0
    outputTokens: int = 0
    cacheReadInputTokens: int = 0
    cacheCreationInputTokens: int = 0
    costUSD: float = 0.0
    costBasis: str = "list"
    """`unknown`: the client knows no price of that model and took another one's."""

    @property
    def usage(self) -> Usage:
        return Usage(
            input_tokens=self.inputTokens,
            cache_read_tokens=self.cacheReadInputTokens,
            cache_write_tokens=self.cacheCreationInputTokens,
            output_tokens=self.outputTokens,
        )


class Limit(_Read):
    """State of a subscription's quota."""

    status: str = ""
    resetsAt: float | None = None


class Line(_Read):
    """Any line of the stream; which fields matter depends on `type` and `subtype`."""

    type: Literal["system", "stream_event", "assistant", "user", "result", "rate_limit_event"]
    subtype: str = ""
    session_id: str = ""
    mcp_servers: list[Server] = []
    event: Streamed | None = None
    message: Message | None = None
    tool_use_result: Json | str | list[Json] | None = None
    """Of a user line: what came back, as it was."""
    error: str | None = None
    """Kind of a failed request, of an assistant line and of a retry."""
    error_status: int | None = None
    tool_name: str = ""
    is_error: bool = False
    result: str = ""
    errors: list[str] = []
    stop_reason: str | None = None
    terminal_reason: str = ""
    api_error_status: int | None = None
    total_cost_usd: float | None = None
    model_usage_since_last_result: dict[str, ModelUsage] | None = None
    rate_limit_info: Limit | None = None
