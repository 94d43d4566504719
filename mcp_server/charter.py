"""A role's charter: YAML front matter that programs read, and prose that models read. No I/O."""

import json

from mcp_server.reading import record, yaml_mapping
from toolkits.core.errors import InvalidInput
from toolkits.core.schema import Record

FENCE = "---"
WHERE = "the charter's front matter"


class Settings(Record):
    """The front matter. Every key is optional; a model's role may do with prose alone."""

    task: str = ""
    run: str = ""
    variants: list[str] = []
    """Solutions of the task to search; empty: every one that declares tunables."""
    space: dict[str, dict[str, list[int]]] = {}
    """Variant -> tunable -> the values to try; what is not named keeps all its values."""
    start: dict[str, dict[str, int]] = {}
    """Variant -> the first configuration to measure; a tunable that is not named has its default."""
    seed: int = 0
    evaluations: int = 0
    """Evaluations after which the role is finished; 0: no cap of its own."""
    read: list[str] = []
    """What the role must open before it ends: `task:NAME`, `topic/lesson`, `history`, ids of results."""
    quiet_minutes: float = 20.0
    """Without output, after which the role counts as stalled; 0: never. A job of its own at work excuses it."""
    idle_minutes: float = 45.0
    """Without anything that the lab credits to it, likewise."""
    transcript: str = ""
    """Path of the recorded tool calls that a `replay` role plays."""


class Charter(Settings):
    prose: str = ""


def parse(text: str) -> Charter:
    """Read a charter; raises InvalidInput that names what does not fit."""
    front, prose = _split(text)
    values = yaml_mapping(front, WHERE) if front.strip() else {}
    return Charter(prose=prose, **record(Settings, values, WHERE).model_dump())


def render(charter: Charter) -> str:
    """The text that parses to `charter`."""
    settings = charter.model_dump(exclude={"prose"}, exclude_defaults=True)
    front = "".join(f"{key}: {json.dumps(value)}\n" for key, value in settings.items())
    return f"{FENCE}\n{front}{FENCE}\n{charter.prose}"


def _split(text: str) -> tuple[str, str]:
    lines = text.splitlines(keepends=True)
    if not lines or lines[0].strip() != FENCE:
        return "", text
    for number, line in enumerate(lines[1:], start=1):
        if line.strip() == FENCE:
            return "".join(lines[1:number]), "".join(lines[number + 1 :])
    raise InvalidInput("the charter opens its front matter with --- and never closes it")
