"""Answers as JSON for the wire, where every character is paid for by the reader."""

from collections.abc import Sequence
from typing import Any, cast

from toolkits.core.schema import Json, Record


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
