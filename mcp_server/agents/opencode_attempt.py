"""One attempt of opencode: its event lines, those of the watch in it, and its exit, put together. Starts nothing."""

from datetime import UTC, datetime

from pydantic import Field, ValidationError

from mcp_server.agents.agent import AgentEvent, Ended, Exit, Usage
from mcp_server.agents.opencode_endings import GivenUp, Problem, failed, given_up, short, unreached
from mcp_server.agents.own_program import one_line
from mcp_server.agents.refusal import declines
from toolkits.core.schema import Json, Record

SERVER = "lab"
EVIDENCE_CHARACTERS = 600


class _Cache(Record, extra="ignore"):
    read: int = 0
    write: int = 0


class _Tokens(Record, extra="ignore"):
    total: int = 0
    input: int = 0
    output: int = 0
    reasoning: int = 0
    cache: _Cache = _Cache()

    def usage(self, model: str) -> Usage:
        read_in = self.input + self.cache.read + self.cache.write
        return Usage(
            model=model,
            input_tokens=self.input,
            cache_read_tokens=self.cache.read,
            cache_write_tokens=self.cache.write,
            output_tokens=max(self.total - read_in, self.output),
        )


class _State(Record, extra="ignore"):
    status: str = ""
    input: Json = {}
    error: str = ""


class _Part(Record, extra="ignore"):
    id: str = ""
    text: str = ""
    tool: str = ""
    state: _State = _State()
    reason: str = ""
    tokens: _Tokens = _Tokens()
    cost: float = 0.0


class _Event(Record, extra="ignore"):
    type: str
    session: str = Field("", alias="sessionID")
    part: _Part = _Part()
    error: Problem | None = None


class OpencodeAttempt:
    """Understands the stream of `opencode run --format json`."""

    def __init__(self, command: list[str], environment: dict[str, str], model: str) -> None:
        self.command = command
        self.environment = environment
        self._model = model
        self._session = ""
        self._usd = 0.0
        self._booked: set[str] = set()
        """Ids of replies; each is told by the watch and, later, by opencode."""
        self._finish = ""
        """Why the last reply ended."""
        self._words = ""
        self._answers = 0
        self._unanswered = ""
        """Why the lab did not answer the last call; empty: it did."""
        self._problem: Problem | None = None
        self._given_up: GivenUp | None = None

    def hear(self, line: str) -> list[AgentEvent]:
        try:
            event = _Event.model_validate_json(line)
            if event.type == "lab_watch":
                self._given_up = GivenUp.model_validate_json(line)
        except ValidationError:
            return []
        self._problem = event.error or self._problem
        return [*self._begin(event.session), *self._hear_part(event.type, event.part)]

    def poll(self) -> list[AgentEvent]:
        return []

    def ended(self, exit: Exit) -> Ended:
        said = self._verdict(exit)
        reported = self._problem.data.message if self._problem else ""
        errors = exit.errors.strip()[-EVIDENCE_CHARACTERS:]
        seen = [text for text in (exit.how, reported, self._unanswered, errors) if text]
        return said.model_copy(update={"evidence": [short(text) for text in seen]})

    def _begin(self, session: str) -> list[AgentEvent]:
        if not session or self._session:
            return []
        self._session = session
        return [AgentEvent(kind="session", text=session)]

    def _hear_part(self, type: str, part: _Part) -> list[AgentEvent]:
        match type:
            case "step_start":
                self._words = ""
                return []
            case "text":
                self._words = part.text
                return [AgentEvent(kind="progress", text=one_line(part.text))]
            case "tool_use":
                return self._hear_call(part)
            case "step_finish" | "lab_reply":
                return self._hear_reply(part)
            case _:
                return []

    def _hear_call(self, part: _Part) -> list[AgentEvent]:
        server, _, tool = part.tool.partition("_")
        if server == SERVER:
            self._unanswered = part.state.error if unreached(part.state.error) else ""
            self._answers += not self._unanswered
            return [AgentEvent(kind="progress", text=f"calls {tool}")]
        return [AgentEvent(kind="progress", text=one_line(f"{part.tool} {part.state.input.get('filePath', '')}"))]

    def _hear_reply(self, part: _Part) -> list[AgentEvent]:
        self._finish = part.reason
        if part.id in self._booked:
            return []
        self._booked.add(part.id)
        self._usd += part.cost
        usage = part.tokens.usage(self._model)
        # Without prices opencode says 0 for every reply; then the lab's own table is the better account.
        return [AgentEvent(kind="spend", usage=usage, usd_total=self._usd or None)] if usage.tokens else []

    def _verdict(self, exit: Exit) -> Ended:
        if exit.returncode < 0:
            return Ended(ending="crashed", note=f"ended by {exit.how}")
        if self._given_up:
            return given_up(self._given_up, datetime.now(UTC))
        if self._problem:
            return failed(self._problem)
        if self._unanswered:
            return Ended(ending="tools_missing", note=short(f"the lab stopped answering: {self._unanswered}"))
        if exit.returncode != 0 or self._finish != "stop":
            return Ended(ending="crashed", note=f"{exit.how} {self._how_far()}")
        if not self._answers and declines(self._words):
            return Ended(ending="refused", note=self._words)
        return Ended(ending="done", note=short(self._words) or "it ended its turn without a word")

    def _how_far(self) -> str:
        return f"after a reply that ended with {self._finish!r}" if self._finish else "before any reply was whole"
