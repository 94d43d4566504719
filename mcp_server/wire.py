"""Answers as JSON for the wire, where every character is paid for by the reader."""

import re
from collections.abc import Sequence
from typing import Any, cast

from toolkits.core.schema import Json, Record

_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What a terminal obeys instead of showing it, or what turns the order of the text around."""


def visible(text: str) -> str:
    """A candidate's words may steer no terminal: what is no text is written as JSON would write it."""
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def slim(record: Record) -> Json:
    """The record as JSON without the optional fields that say nothing."""
    kept: Json = {}
    for name, field in type(record).model_fields.items():
        value = _plain(getattr(record, name))
        if field.is_required() or not (value is None or value in ("", [], {})):
            kept[name] = value
    return kept | {name: _plain(value) for name, value in (record.model_extra or {}).items()}


def _plain(value: object) -> Any:
    match value:
        case Record():
            return slim(value)
        case list() | tuple():
            return [_plain(item) for item in cast(Sequence[object], value)]
        case dict():
            return {str(key): _plain(item) for key, item in cast(dict[object, object], value).items()}
        case bool() | int() | float() | None:
            return value
        case _:
            return str(value)
