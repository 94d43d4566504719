"""What an open model's session has said so far, on disk: a later attempt at the role goes on from there."""

from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ToolReturnPart,
)

INTERRUPTED = "You were interrupted before this call had an answer. Look whether it was done, or call again."


class History:
    """The messages of one session. Saved aside and renamed: an attempt may be killed at any time."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.messages = _answered(_load(file))

    def save(self, messages: Sequence[ModelMessage]) -> None:
        self.messages = list(messages)
        aside = self._file.with_suffix(".aside")
        aside.write_bytes(ModelMessagesTypeAdapter.dump_json(self.messages))
        aside.replace(self._file)

    def mend(self) -> None:
        """Make the messages such that a model takes them, after an error that broke a turn."""
        self.messages = _answered(self.messages)


def _load(file: Path) -> list[ModelMessage]:
    try:
        return ModelMessagesTypeAdapter.validate_json(file.read_bytes())
    except (FileNotFoundError, ValidationError):
        return []


def _answered(messages: list[ModelMessage]) -> list[ModelMessage]:
    """Calls without a result are refused by every endpoint, so what was interrupted is said to be."""
    last = next((index for index, one in reversed(list(enumerate(messages))) if isinstance(one, ModelResponse)), None)
    if last is None:
        return messages
    reply, after = messages[last], messages[last + 1 :]
    done = {part.tool_call_id for one in after for part in one.parts if isinstance(part, ToolReturnPart)}
    calls = reply.tool_calls if isinstance(reply, ModelResponse) else []
    missing = [
        ToolReturnPart(call.tool_name, INTERRUPTED, call.tool_call_id)
        for call in calls
        if call.tool_call_id not in done
    ]
    whole = [one for one in after if one.parts]
    return [*messages[: last + 1], *([ModelRequest(parts=missing)] if missing else []), *whole]
