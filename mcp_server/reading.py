"""Turns text that people write (YAML, JSON lines) into records, and says in a line or two what does not fit."""

import json
import os
import stat
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from toolkits.core.errors import InvalidInput
from toolkits.core.schema import Json, Record

try:
    from yaml import CSafeLoader as Loader  # ten times as fast, and every call of a tool reads several files
except ImportError:
    from yaml import SafeLoader as Loader

R = TypeVar("R", bound=Record)
SHOWN_PROBLEMS = 3
MOST_BYTES = 4_000_000
_UNREADABLE = (ValueError, ArithmeticError, LookupError, AttributeError, TypeError, RecursionError)
"""What the YAML package raises beside its own errors, at `2001-99-99`, `!!bool x` or ten thousand digits."""


def text_of(path: Path, most: int = MOST_BYTES) -> str:
    """The text of a file that must be there."""
    try:
        return content_of(path, most).decode()
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not UTF-8 text: save it as UTF-8") from None


def content_of(path: Path, most: int = MOST_BYTES, flags: int = 0) -> bytes:
    """The bytes of a plain file, opened once: its owner may put a pipe or a giant there at any moment."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise InvalidInput(f"{path} is not a regular file: remove it")
            content = file.read(most + 1)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read ({error.strerror}): it has to be there") from error
    if len(content) > most:
        raise InvalidInput(f"{path} holds more than {most} bytes: shorten it")
    return content


def yaml_mapping(text: str, where: str) -> Json:
    """A YAML document that is a mapping of names to values; to be read only, below its first level."""
    return dict(_yaml_mapping(text, where))


@lru_cache(maxsize=256)
def _yaml_mapping(text: str, where: str) -> Json:
    """The same text is parsed once: every call of a tool reads several files that seldom change."""
    try:
        value: object = yaml.load(text, Loader=Loader)
    except yaml.YAMLError as error:
        raise InvalidInput(f"{where}{_position(error)}: not valid YAML: {_problem(error)}") from None
    except _UNREADABLE as error:
        raise InvalidInput(
            f"{where}: not valid YAML: it holds a number or a date that is none ({error})"[:500]
        ) from None
    return _mapping(value, where, "name: value")


def yaml_text(values: Json) -> str:
    """What `yaml_mapping` reads back, in the order given."""
    return yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=110)  # pyright: ignore[reportUnknownMemberType]


def json_mapping(text: str, where: str) -> Json:
    """A JSON object."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{where}: not valid JSON: {error}") from None
    return _mapping(value, where, '{"name": value}')


def record(model: type[R], values: Json, where: str) -> R:
    """Validate; what is wrong is told by field, with what to do."""
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise InvalidInput(f"{where}: {_explained(model, error)}") from None


def _mapping(value: object, where: str, form: str) -> Json:
    if not isinstance(value, dict):
        raise InvalidInput(f"{where}: must be a mapping of the form `{form}`, not {type(value).__name__}")
    return {str(key): item for key, item in cast(dict[Any, Any], value).items()}


def _position(error: yaml.YAMLError) -> str:
    mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
    return f":{mark.line + 1}:{mark.column + 1}" if mark else ""


def _problem(error: yaml.YAMLError) -> str:
    told = error.problem if isinstance(error, yaml.MarkedYAMLError) else None
    return f"{told or error}; quote texts that hold ': ', '#' or start with a special character"


def _explained(model: type[Record], error: ValidationError) -> str:
    problems = error.errors(include_url=False)
    shown = "; ".join(_one(model, problem) for problem in problems[:SHOWN_PROBLEMS])
    rest = len(problems) - SHOWN_PROBLEMS
    return f"{shown}; and {rest} more" if rest > 0 else shown


def _one(model: type[Record], problem: ErrorDetails) -> str:
    field = ".".join(str(part) for part in problem["loc"])
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "missing":
        return f"field `{field}` is missing, add it{_meaning(model, field)}"
    if problem["type"] == "extra_forbidden":
        return f"unknown field `{field}`{_meant(model, field)}"
    given: object = problem["input"]
    got = f" (got {given!r:.60})" if isinstance(given, str | int | float) else ""
    return f"field `{field}`: {message}{got}" if field else message


def _meaning(model: type[Record], field: str) -> str:
    known = model.model_fields.get(field)
    description = known.description if known else None
    return f" ({' '.join(description.split()).rstrip('.')})" if description else ""


def _meant(model: type[Record], field: str) -> str:
    if "." in field:
        return ", remove it"
    near = get_close_matches(field, model.model_fields, n=1)
    return f", did you mean `{near[0]}`?" if near else f", remove it; known are {', '.join(model.model_fields)}"
