"""What the wire formats of models have in common: a reply whole and streamed, turns, errors. Opens no socket."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from tests.scripted_step import Json, Step

REFUSAL = "I can't help with that."


@dataclass(frozen=True)
class Reply:
    """One turn: whole, and as the events of a stream, each with its name (or none)."""

    whole: Json
    events: list[tuple[str, Json]]
    end: str = ""
    """What ends a stream besides the last event."""


@dataclass(frozen=True)
class Dialect:
    """How one API counts turns, offers tools, answers and fails."""

    turns: Callable[[Json], int]
    tools: Callable[[Json], dict[str, str]]
    """Name -> namespace, which is mostly empty."""
    reply: Callable[[Json, Step, int], Reply]
    error: Callable[[int], Json]


def listed(body: Json, name: str) -> list[Json]:
    """The objects in a field; none where it is missing or holds something else."""
    value = body.get(name)
    return cast(list[Json], value) if isinstance(value, list) else []


def assistant_messages(body: Json) -> int:
    return sum(message.get("role") == "assistant" for message in listed(body, "messages"))
