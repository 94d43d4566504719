"""One member added to JSON with comments, or taken out, with every other character left as it is. Knows no file."""

import json
import re
from dataclasses import dataclass
from typing import cast

from mcp_server.attach.client import Edit
from toolkits.core.errors import InvalidInput
from toolkits.core.schema import Json

_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_COMMA = re.compile(r'"(?:\\.|[^"\\])*"|,(?=\s*[}\]])')
_SPACE = re.compile(r"\s*")
_DECODER = json.JSONDecoder(strict=False)


@dataclass(frozen=True)
class _Member:
    key: str
    start: int
    value: int
    end: int


def parsed(text: str) -> Json:
    """What it says; nothing at all counts as an empty object."""
    try:
        value = json.loads(_plain(text) if text.strip() else "{}", strict=False)
    except ValueError as error:
        raise InvalidInput(f"is no JSON ({error})") from error
    if not isinstance(value, dict):
        raise InvalidInput("holds no JSON object")
    return cast(Json, value)


def added(text: str, parent: str, name: str, value: Json) -> Edit:
    """`name` becomes the first member of the object `parent`, which is made when it is missing."""
    if not text.strip():
        snippet = json.dumps({parent: {name: value}}, indent=2) + "\n"
        return Edit(text + snippet, snippet)
    plain = _plain(text)
    root = plain.index("{")
    holder = _member(plain, root, parent)
    if holder is None:
        return _first(text, plain, root, _shown(parent, {name: value}, 1), depth=1)
    if plain[holder.value] != "{":
        raise InvalidInput(f"holds {parent!r}, which is no object")
    return _first(text, plain, holder.value, _shown(name, value, 2), depth=2)


def without(text: str, parent: str, name: str) -> str:
    """The text with that member gone, and with it the comma that set it apart."""
    plain = _plain(text)
    holder = _member(plain, plain.index("{"), parent)
    gone = _member(plain, holder.value, name) if holder and plain[holder.value] == "{" else None
    if gone is None:
        return text
    start, end = len(text[: gone.start].rstrip()), gone.end
    after = _skip(plain, end)
    if plain[after] == ",":
        end = after + 1
    elif plain[start - 1] == ",":
        start -= 1
    return text[:start] + text[end:]


def _plain(text: str) -> str:
    """Comments and trailing commas as blanks: plain JSON, every character in its place."""
    text = _TOKEN.sub(lambda found: found[0] if found[0][0] == '"' else re.sub(r"[^\r\n]", " ", found[0]), text)
    return _COMMA.sub(lambda found: found[0] if found[0][0] == '"' else " ", text)


def _member(plain: str, opening: int, key: str) -> _Member | None:
    return next((member for member in _members(plain, opening) if member.key == key), None)


def _members(plain: str, opening: int) -> list[_Member]:
    """Of the object that opens there."""
    found: list[_Member] = []
    at = _skip(plain, opening + 1)
    while plain[at] != "}":
        start = at
        key, at = _DECODER.raw_decode(plain, start)
        value = _skip(plain, _skip(plain, at) + 1)
        _, end = _DECODER.raw_decode(plain, value)
        found.append(_Member(cast(str, key), start, value, end))
        at = _skip(plain, end)
        at = _skip(plain, at + 1) if plain[at] == "," else at
    return found


def _skip(plain: str, at: int) -> int:
    space = _SPACE.match(plain, at)
    return space.end() if space else at


def _first(text: str, plain: str, opening: int, block: str, depth: int) -> Edit:
    """The block as the first member of the object that opens there, apart from what follows it."""
    at = opening + 1
    follows = plain[_skip(plain, at)] != "}"
    end = "," if follows else "\n" + "  " * (depth - 1) if text[at] == "}" else ""
    snippet = f"\n{block}{end}"
    return Edit(text[:at] + snippet + text[at:], snippet)


def _shown(name: str, value: Json, depth: int) -> str:
    lines = f"{json.dumps(name)}: {json.dumps(value, indent=2)}".splitlines()
    return "\n".join("  " * depth + line for line in lines)
