"""Turns text that people write (YAML, JSON lines) into records, and says in a line or two what does not fit."""

import json
from difflib import get_close_matches
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


def text_of(path: Path) -> str:
    """The text of a file that must be there."""
    try:
        return path.read_bytes().decode()
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not UTF-8 text: save it as UTF-8") from None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read ({error.strerror}): it has to be there") from error


def yaml_mapping(text: str, where: str) -> Json:
    """A YAML document that is a mapping of names to values."""
    try:
        value: object = yaml.load(text, Loader=Loader)
    except yaml.YAMLError as error:
        raise InvalidInput(f"{where}{_position(error)}: not valid YAML: {_problem(error)}") from None
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
