"""Files of the run folder: written whole or not at all, and a failure is one line that says what to do."""

from pathlib import Path

from toolkits.core.errors import LabError


def write(path: Path, text: str) -> None:
    """Also makes the folder."""
    aside = path.with_suffix(path.suffix + ".new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        aside.write_text(text, encoding="utf-8")
        aside.rename(path)
    except OSError as error:
        raise LabError(unwritable(path, error)) from error


def unwritable(path: Path, error: OSError) -> str:
    return f"{path} cannot be written: {(error.strerror or str(error)).lower()}. The same command resumes the run."
