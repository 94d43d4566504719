"""Keeps a conversation within what a model can take in. Opens nothing; knows no endpoint and no file.

The first message, which is the task, and the latest exchanges stay. Of what lies between, long tool results are cut
first, oldest first; if that is not enough whole exchanges go, oldest first, and a note stands in their place.
"""

from collections.abc import Sequence
from dataclasses import replace

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

CHARACTERS_A_TOKEN = 3
"""Low for prose, about right for code and JSON: better to cut early than to be refused."""
FILLED = 0.75
"""Of the window; the rest is left for the reply."""
SHRUNK = 0.7
"""What is sent again after a refusal for length, as a part of what was refused."""
KEPT_EXCHANGES = 2
"""The latest ones, which the model is working on: their results are only cut when nothing else is left."""
KEPT_CHARACTERS = 600
"""Of a tool result that is cut."""
DROPPED = "[Earlier exchanges were left out here to fit the context. Your files and read_history hold what was done.]"


class Window:
    """How many tokens the model takes in, 0 while unknown, and what a request costs besides its messages."""

    def __init__(self, tokens: int = 0) -> None:
        self.tokens = tokens
        self._overhead = 0

    def learn(self, messages: Sequence[ModelMessage], input_tokens: int) -> None:
        """From a reply: what the messages do not explain are instructions and the tools' schemas."""
        self._overhead = max(input_tokens - size(messages), 0)

    def shrink(self, messages: list[ModelMessage]) -> bool:
        """After a refusal for length: less than this from now on. False: nothing is left to leave out."""
        self.tokens = int((SHRUNK * size(messages) + self._overhead) / FILLED)
        return size(self.fit(messages)) < size(messages)

    def fit(self, messages: list[ModelMessage]) -> list[ModelMessage]:
        """The messages, in a shorter form if they must be shorter."""
        room = int(self.tokens * FILLED) - self._overhead
        if not self.tokens or size(messages) <= room:
            return messages
        shorter = _results_cut(messages, room, before=_start_of_last(messages, KEPT_EXCHANGES))
        shorter = _exchanges_dropped(shorter, room)
        return _results_cut(shorter, room, before=len(shorter))


def size(messages: Sequence[ModelMessage]) -> int:
    """Tokens, estimated by the characters of what is said."""
    return sum(_length(part) for message in messages for part in message.parts) // CHARACTERS_A_TOKEN


def _length(part: ModelRequestPart | ModelResponsePart) -> int:
    match part:
        case ToolReturnPart():
            return len(part.model_response_str())
        case ToolCallPart():
            return len(part.tool_name) + len(part.args_as_json_str())
        case TextPart() | UserPromptPart():
            return len(str(part.content))
        case _:
            return 0


def _results_cut(messages: list[ModelMessage], room: int, before: int) -> list[ModelMessage]:
    cut = list(messages)
    for index in range(before):
        message = cut[index]
        if size(cut) <= room:
            break
        if isinstance(message, ModelRequest):
            cut[index] = replace(message, parts=[_shortened(part) for part in message.parts])
    return cut


def _shortened(part: ModelRequestPart) -> ModelRequestPart:
    if not isinstance(part, ToolReturnPart) or _length(part) <= KEPT_CHARACTERS:
        return part
    text = part.model_response_str()
    return replace(part, content=f"{text[:KEPT_CHARACTERS]} ... [cut: {len(text)} characters; call again if needed]")


def _exchanges_dropped(messages: list[ModelMessage], room: int) -> list[ModelMessage]:
    """An exchange begins with a reply, so what remains never has a result without its call."""
    first = messages[0]
    if not isinstance(first, ModelRequest):
        return messages
    noted = [part for part in first.parts if not (isinstance(part, UserPromptPart) and part.content == DROPPED)]
    head = replace(first, parts=[*noted, UserPromptPart(DROPPED)])
    shorter = messages
    for start in _replies(messages)[1:]:
        if size(shorter) <= room:
            break
        shorter = [head, *messages[start:]]
    return shorter


def _replies(messages: Sequence[ModelMessage]) -> list[int]:
    return [index for index, message in enumerate(messages) if isinstance(message, ModelResponse)]


def _start_of_last(messages: Sequence[ModelMessage], exchanges: int) -> int:
    replies = _replies(messages)
    return replies[-exchanges] if len(replies) >= exchanges else 0
