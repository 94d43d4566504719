"""One table added to TOML, or taken out, with every other character left as it is. Knows no file."""

import json
import re
import tomllib

from mcp_server.attach.client import Edit
from toolkits.core.errors import InvalidInput
from toolkits.core.schema import Json

_HEADER = re.compile(r"^\s*\[")


def parsed(text: str) -> Json:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(f"is no TOML ({error})") from error


def added(text: str, parent: str, name: str, value: Json) -> Edit:
    """The table goes to the end, where it cannot change what the lines above it mean."""
    start = "" if not text or text.endswith("\n") else "\n"
    snippet = f"{start}{chr(10) if text.strip() else ''}[{parent}.{name}]\n{_lines(value)}"
    return Edit(text + snippet, snippet)


def without(text: str, parent: str, name: str) -> str:
    """The text with that table gone, and with it the tables inside it."""
    own = re.compile(rf'^\s*\[\s*{re.escape(parent)}\s*\.\s*"?{re.escape(name)}"?\s*[.\]]')
    kept: list[str] = []
    inside = False
    for line in text.splitlines(keepends=True):
        inside = bool(own.match(line)) if _HEADER.match(line) else inside
        kept += [] if inside else [line]
    return "".join(kept)


def _lines(value: Json) -> str:
    """Text, numbers, truth values and lists of text are written the same way in JSON."""
    return "".join(f"{key} = {json.dumps(entry, ensure_ascii=False)}\n" for key, entry in value.items())
