"""One attempt of Claude Code: its stream and its exit, put together. Starts nothing."""

from pydantic import ValidationError

from mcp_server.agents.agent import AgentEvent, Ended, Exit, Usage
from mcp_server.agents.claude_endings import Seen, short, verdict
from mcp_server.agents.claude_lines import SERVER, SYNTHETIC, Block, Line, Message, Streamed
from mcp_server.agents.own_program import one_line

PREFIX = f"mcp__{SERVER}__"
EVIDENCE_CHARACTERS = 600
UNKNOWN_PRICE = "unknown"


class ClaudeAttempt:
    """Understands `--output-format stream-json` with partial messages."""

    def __init__(self, command: list[str], environment: dict[str, str], *, resumed: bool) -> None:
        self.command = command
        self.environment = environment
        self._resumed = resumed
        self._seen = Seen()
        self._result: Line | None = None
        self._model = ""
        self._replies: set[str] = set()
        """Ids of the messages whose tokens are booked."""
        self._booked = Usage()
        self._usd = 0.0
        self._lab_calls: set[str] = set()

    def hear(self, line: str) -> list[AgentEvent]:
        try:
            read = Line.model_validate_json(line)
        except ValidationError:
            return []
        match read.type:
            case "stream_event":
                return self._stream(read.event) if read.event else []
            case "assistant":
                return self._assistant(read)
            case "user":
                return self._results(read)
            case "system":
                return self._system(read)
            case "rate_limit_event":
                if read.rate_limit_info and read.rate_limit_info.status == "rejected":
                    self._note(reset=read.rate_limit_info.resetsAt or 0.0)
                return []
            case "result":
                return self._ended(read)

    def poll(self) -> list[AgentEvent]:
        return []

    def ended(self, exit: Exit) -> Ended:
        said = verdict(self._result, self._seen, exit)
        end = self._result.model_dump_json(include=_SHOWN, exclude_none=True) if self._result else ""
        seen = [exit.how, f"lab: {self._seen.server}", self._seen.unanswered, end]
        seen += [exit.errors.strip()[-EVIDENCE_CHARACTERS:]]
        return said.model_copy(update={"evidence": [short(text) for text in seen if text]})

    # --- what is spent --------------------------------------------------------------------------------------------

    def _stream(self, event: Streamed) -> list[AgentEvent]:
        """What was read is paid for when a reply begins, what is said when it is over."""
        if event.type == "message_start":
            self._model = event.message.model
            self._replies.add(event.message.id)
            usage = event.message.usage
            return self._spent(usage.usage(self._model).model_copy(update={"output_tokens": 0})) if usage else []
        if event.type == "message_delta" and event.usage:
            return self._spent(Usage(model=self._model, output_tokens=event.usage.output_tokens or 0))
        return []

    def _whole(self, message: Message) -> list[AgentEvent]:
        """A reply that came without a stream, as after a broken one."""
        if message.id in self._replies or message.model == SYNTHETIC or not message.usage:
            return []
        self._replies.add(message.id)
        return self._spent(message.usage.usage(message.model))

    def _spent(self, usage: Usage) -> list[AgentEvent]:
        if not usage.tokens:
            return []
        self._booked = _sum(self._booked, usage)
        return [AgentEvent(kind="spend", usage=usage)]

    def _ended(self, result: Line) -> list[AgentEvent]:
        self._result = result
        used = result.model_usage_since_last_result
        if used is None:
            # A resumed session's total is of all its processes: then the tokens have to do.
            total = None if self._resumed else result.total_cost_usd
            return [AgentEvent(kind="spend", usd_total=total)] if total is not None else []
        total = Usage()
        for one in used.values():
            total = _sum(total, one.usage)
        rest = _difference(total, self._booked).model_copy(update={"model": self._model or next(iter(used), "")})
        events = self._spent(rest)
        self._usd += sum(one.costUSD for one in used.values())
        trusted = all(one.costBasis != UNKNOWN_PRICE for one in used.values())
        return [*events, AgentEvent(kind="spend", usd_total=self._usd)] if trusted else events

    # --- what it does ---------------------------------------------------------------------------------------------

    def _assistant(self, line: Line) -> list[AgentEvent]:
        if not line.message:
            return []
        if line.error:
            self._note(error=line.error)
        self._lab_calls |= {block.id for block in line.message.blocks if block.name.startswith(PREFIX)}
        shown = [text for block in line.message.blocks if (text := _shown(block))]
        progress = [AgentEvent(kind="progress", text=one_line(text)) for text in shown]
        return [*self._whole(line.message), *progress]

    def _results(self, line: Line) -> list[AgentEvent]:
        for block in line.message.blocks if line.message else []:
            if block.type == "tool_result" and block.tool_use_id in self._lab_calls:
                # An error that the lab answered comes with the whole answer beside it; the client's own is words only.
                lost = str(block.content) if block.is_error and isinstance(line.tool_use_result, str) else ""
                self._note(unanswered=lost, answers=self._seen.answers + (not lost))
        return []

    def _system(self, line: Line) -> list[AgentEvent]:
        match line.subtype:
            case "init":
                status = next((server.status for server in line.mcp_servers if server.name == SERVER), "not configured")
                self._note(server=status, connected=status == "connected")
                return [AgentEvent(kind="session", text=line.session_id)]
            case "api_retry":
                text = f"asks the model again after: {line.error} {line.error_status or ''}"
                return [AgentEvent(kind="progress", text=one_line(text))]
            case "permission_denied":
                if line.tool_name.startswith(PREFIX):
                    self._note(unanswered=f"{line.tool_name} was not permitted")
                return [AgentEvent(kind="progress", text=one_line(f"was not permitted: {line.tool_name}"))]
            case _:
                return []

    def _note(self, **update: object) -> None:
        self._seen = self._seen.model_copy(update=update)


_SHOWN = {"subtype", "is_error", "terminal_reason", "api_error_status", "stop_reason", "errors"}


def _shown(block: Block) -> str:
    if block.type == "tool_use":
        what = block.input.get("file_path") or block.input.get("pattern") or ""
        return f"calls {block.name.removeprefix(PREFIX)} {what}"
    return block.text if block.type == "text" else ""


def _sum(a: Usage, b: Usage) -> Usage:
    return a.model_copy(update={name: getattr(a, name) + getattr(b, name) for name in _KINDS})


def _difference(a: Usage, b: Usage) -> Usage:
    return Usage().model_copy(update={name: max(0, getattr(a, name) - getattr(b, name)) for name in _KINDS})


_KINDS = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens")
