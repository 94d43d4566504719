"""What an agent is told of a job, kept small: both halves of the answer stand alone, and neither is above MAX_BYTES.

The whole record stays in the ledger and in the log file. Characters count as JSON writes them in ASCII, which is the
most that any client makes of them.
"""

import json
from typing import Any, TypeVar, cast

from mcp_server.schema import JobAnswer
from mcp_server.texts import text_of
from mcp_server.wire import slim
from toolkits.core.schema import Record

MAX_BYTES = 4096
STEPS = ((900, 16), (700, 12), (500, 8), (350, 6), (250, 5), (180, 4), (120, 3), (80, 2), (40, 1))
"""Characters of a text and items of a list, ever fewer until the answer fits."""
WHOLE = ("job", "evaluation", "solution", "log_path", "raw_report", "where")
"""Names, of which a part is of no use; a path above half of all is cut nevertheless."""

A = TypeVar("A", bound=JobAnswer)


def fitted(answer: A) -> A:
    """The answer with long texts cut in their middle and long lists cut at their end, until both halves fit."""
    if _characters(answer) <= MAX_BYTES and size(answer) <= MAX_BYTES:
        return answer
    steps = (cast(A, _shortened(answer, characters, items)) for characters, items in STEPS)
    return next(shorter for shorter in steps if size(shorter) <= MAX_BYTES)


def _characters(value: object) -> int:
    """Of all its texts, which cost a byte each at least: megabytes of them need not be written down to be too much."""
    match value:
        case Record():
            return sum(_characters(getattr(value, name)) for name in type(value).model_fields)
        case list():
            return sum(map(_characters, cast(list[object], value)))
        case str():
            return len(value)
        case _:
            return 0


def size(answer: Record) -> int:
    """Bytes of the larger half."""
    return max(cost(slim(answer)), cost(text_of(answer)))


def cost(value: object) -> int:
    """Bytes as JSON in ASCII."""
    return len(json.dumps(value))


def clipped(text: str, limit: int) -> str:
    """Head and tail of a text that costs more than `limit` bytes."""
    if cost(text) - 2 <= limit:
        return text
    room = max(limit - 5, 0)
    head = _prefix(text, room * 2 // 3)
    return f"{head} ... {_prefix(text[::-1], room // 3)[::-1]}"


def _prefix(text: str, room: int) -> str:
    """As many characters as cost at most `room`."""
    least, most = 0, min(len(text), room)
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if cost(text[:middle]) - 2 <= room else (least, middle - 1)
    return text[:least]


def _shortened(record: Record, characters: int, items: int) -> Record:
    values = {name: getattr(record, name) for name in type(record).model_fields}
    return record.model_copy(
        update={
            name: _short(value, MAX_BYTES // 8 if name in WHOLE else characters, items)
            for name, value in values.items()
        }
    )


def _short(value: Any, characters: int, items: int) -> Any:
    match value:
        case Record():
            return _shortened(value, characters, items)
        case list():
            return [_short(item, characters, items) for item in cast(list[object], value)[:items]]
        case str() if type(value) is str:
            return clipped(value, characters)
        case _:
            return value
