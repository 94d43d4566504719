"""What a caller is told of lessons, runs and their history."""

from mcp_server.schema.profiles import LessonLine
from toolkits.core.schema import Json, Lesson, Record


class LessonsAnswer(Record):
    lessons: list[LessonLine]
    """What matched, best first."""
    text: str
    """Full text of the lesson asked for by slug, or of the best match."""


class LessonAdded(Record):
    lesson: Lesson
    path: str


class HistoryLine(Record):
    seq: int
    at: str
    role: str
    kind: str
    body: Json


class HistoryAnswer(Record):
    run: str
    events: list[HistoryLine]
    next_after: int
    """Pass as `after` to read on; equal to the last `seq` given."""
    more: bool


class RunAnswer(Record):
    run: str
    task: str
    folder: str
    created: bool
    """False: the run existed and is resumed."""
    config: Json
    """Frozen when the run was created."""
    finished: bool
    evaluations: int
    """Evaluations recorded so far."""
    spent_usd: float
    spent_tokens: int
