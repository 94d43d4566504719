"""What a configuration was before the lab was put into it, kept until it is taken out. Decides nothing."""

import hashlib
import os
import tempfile
from pathlib import Path

from pydantic import ValidationError

from toolkits.core.errors import InvalidInput, LabError
from toolkits.core.schema import Record


class Kept(Record):
    """A file before and after, so that the change can be undone to the byte."""

    file: Path
    before: str | None
    """None: there was no such file."""
    made: tuple[Path, ...]
    """Folders that were made for it, the innermost first."""
    after: str
    snippet: str


def keep(kept: Kept) -> None:
    record = _record(kept.file)
    record.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    write(record, kept.model_dump_json(indent=1), mode=0o600)


def kept_of(file: Path) -> Kept | None:
    record = _record(file)
    try:
        return Kept.model_validate_json(record.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise LabError(f"{record} does not read as what `attach` wrote ({error}): remove it") from error


def forget(file: Path) -> None:
    _record(file).unlink(missing_ok=True)


def copy_before(file: Path, before: str) -> Path:
    """What the file was, as a file of its own that stays."""
    copy = _record(file).with_name(f"{_record(file).stem}.before{file.suffix}")
    write(copy, before, mode=0o600)
    return copy


def read(path: Path) -> str | None:
    """With its line ends as they are; None: no such file."""
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read ({error}): mend it first") from error


def write(path: Path, text: str, mode: int = 0o644) -> None:
    """Aside, then renamed; through a link to the file it points at; a file that exists keeps its mode."""
    path = path.resolve()
    mode = path.stat().st_mode & 0o7777 if path.exists() else mode
    try:
        handle, aside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    except OSError as error:
        raise LabError(f"{path} cannot be written ({error.strerror}): change the rights of its folder") from error
    with os.fdopen(handle, "wb") as file:
        file.write(text.encode())
    Path(aside).chmod(mode)
    Path(aside).rename(path)


def _record(file: Path) -> Path:
    """In the person's own state, not beside the file: a project's folder is shared."""
    state = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    name = hashlib.sha256(str(file).encode()).hexdigest()[:12]
    return state / "kernel-lab" / "attached" / f"{file.stem}-{name}.json"
