"""Something learned that outlives a run."""

from toolkits.core.schema.record import Record


class Lesson(Record):
    """Something learned that outlives a run."""

    slug: str
    """`topic/name`."""
    title: str
    applies_to: dict[str, list[str]] = {}
    """For example {language: [cpp], op: [attention]}."""
    symptom: str
    cause: str
    remedy: str
    evidence: list[str] = []
    """Evaluation ids, addresses, or how it was verified."""
    body: str = ""
