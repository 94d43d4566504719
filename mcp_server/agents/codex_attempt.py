"""One attempt of Codex: its event lines, its session log and its exit, put together. Starts nothing."""

from datetime import UTC, datetime
from typing import Literal

from pydantic import ValidationError

from mcp_server.agents.agent import AgentEvent, Ended, Exit, Usage
from mcp_server.agents.codex_endings import NO_LAB, failed, short
from mcp_server.agents.codex_log import Failure, SessionLog, Total
from mcp_server.agents.own_program import one_line
from mcp_server.agents.refusal import declines
from toolkits.core.schema import Json, Record

SERVER = "lab"
EVIDENCE_CHARACTERS = 600


class _Message(Record, extra="ignore"):
    message: str = ""


class _Item(Record, extra="ignore"):
    type: str = ""
    text: str = ""
    message: str = ""
    server: str = ""
    tool: str = ""
    command: str = ""
    changes: list[Json] = []
    error: _Message | None = None
    """Of a call: it got no answer. An answer that says no is a result."""
    status: str = ""


class _Event(Record, extra="ignore"):
    type: Literal["thread.started", "item.started", "item.completed", "turn.completed", "turn.failed", "error"]
    thread_id: str = ""
    item: _Item = _Item()
    usage: Total | None = None
    error: _Message | None = None
    message: str = ""


class CodexAttempt:
    """Understands the stream of `codex exec --json`."""

    def __init__(self, command: list[str], environment: dict[str, str], session: str, log: SessionLog) -> None:
        self.command = command
        self.environment = environment
        self._session = session
        self._log = log
        self._finished = False
        self._failure = ""
        self._last_words = ""
        self._answers = 0
        self._unanswered = ""
        """Why the lab did not answer the last call; empty: it did."""

    def hear(self, line: str) -> list[AgentEvent]:
        try:
            event = _Event.model_validate_json(line)
        except ValidationError:
            return []
        match event.type:
            case "thread.started":
                self._session = event.thread_id
                return [AgentEvent(kind="session", text=event.thread_id)]
            case "item.started":
                return _progress(event.item) if event.item.type != "agent_message" else []
            case "item.completed":
                return self._hear_item(event.item)
            case "error":
                self._failure = event.message
                return [AgentEvent(kind="progress", text=one_line(event.message))]
            case "turn.completed" | "turn.failed":
                return self._hear_turn(event)

    def poll(self) -> list[AgentEvent]:
        return _spent(self._log.read(self._session)) if self._session else []

    def ended(self, exit: Exit) -> Ended:
        said = self._verdict(exit)
        errors = exit.errors.strip()[-EVIDENCE_CHARACTERS:]
        seen = [text for text in (exit.how, self._failure, self._unanswered, errors) if text]
        return said.model_copy(update={"evidence": [short(text) for text in seen]})

    def _hear_item(self, item: _Item) -> list[AgentEvent]:
        if item.type == "agent_message":
            self._last_words = item.text
            return [AgentEvent(kind="progress", text=one_line(item.text))]
        if item.type == "mcp_tool_call" and item.server == SERVER:
            self._last_words = ""
            self._unanswered = item.error.message if item.error else ""
            self._answers += item.error is None
        return []

    def _hear_turn(self, event: _Event) -> list[AgentEvent]:
        self._finished = event.type == "turn.completed"
        self._failure = event.error.message if event.error else "" if self._finished else self._failure
        told = self.poll()
        rest = self._log.count(event.usage) if event.usage else None
        return [*told, *_spent([rest] if rest else [])]

    def _verdict(self, exit: Exit) -> Ended:
        if exit.returncode < 0:
            return Ended(ending="crashed", note=f"ended by {exit.how}")
        if NO_LAB in exit.errors:
            return Ended(ending="tools_missing", note=f"the lab did not answer when it started: {_reason(exit.errors)}")
        if not self._finished:
            return self._unfinished(exit)
        if self._unanswered:
            return Ended(ending="tools_missing", note=short(f"the lab stopped answering: {self._unanswered}"))
        if not self._last_words or (not self._answers and declines(self._last_words)):
            # What the vendor marks as a refusal reaches no event: the turn ends without a word.
            return Ended(ending="refused", note=self._last_words or "it ended its turn without a word")
        if exit.returncode != 0:
            return Ended(ending="crashed", note=f"{exit.how} after its turn was complete")
        return Ended(ending="done", note=short(self._last_words))

    def _unfinished(self, exit: Exit) -> Ended:
        failure = self._log.failure or (Failure(message=self._failure) if self._failure else None)
        if failure:
            return failed(failure, self._log.limits, datetime.now(UTC))
        return Ended(ending="crashed", note=f"{exit.how} before its turn was over: {_reason(exit.errors)}")


def _spent(usages: list[Usage]) -> list[AgentEvent]:
    return [AgentEvent(kind="spend", usage=usage) for usage in usages]


def _progress(item: _Item) -> list[AgentEvent]:
    match item.type:
        case "mcp_tool_call":
            text = f"calls {item.tool}"
        case "command_execution":
            text = f"runs {item.command}"
        case "file_change":
            text = f"edits {', '.join(str(change.get('path', '')) for change in item.changes)}"
        case _:
            return []
    return [AgentEvent(kind="progress", text=one_line(text))]


def _reason(errors: str) -> str:
    """The last line that says something."""
    lines = [line for line in errors.splitlines() if line.strip()]
    return short(lines[-1]) if lines else "it said nothing"
