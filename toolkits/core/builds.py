"""The build cache: one folder a content hash, written aside and renamed. Knows no compiler."""

import hashlib
import json
import re
import shutil
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from pydantic import ValidationError

from toolkits.core.errors import HarnessError, InvalidInput
from toolkits.core.schema import CompileResult

RESULT_FILE = "result.json"
TIMEOUT = "compile_timeout"
"""How the message of a build begins that was stopped."""
_OF_THIS_MACHINE = re.compile(r"Killed|No space left on device|cannot allocate memory|out of memory", re.IGNORECASE)


def content_key(*parts: object) -> str:
    """A hash of everything that decides what a build gives."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:24]


def find(folder: Path) -> CompileResult | None:
    """The result of an earlier build of the same content, if it is whole."""
    try:
        result = CompileResult.model_validate_json((folder / RESULT_FILE).read_bytes())
    except (OSError, ValidationError):
        return None
    if result.artifact is None:
        return result.model_copy(update={"cached": True, "build_ms": 0.0})
    artifact = folder / result.artifact.name
    return (
        result.model_copy(update={"cached": True, "build_ms": 0.0, "artifact": artifact}) if artifact.exists() else None
    )


def is_final(result: CompileResult) -> bool:
    """Whether the next call would see the same: a time limit or a full memory says something of this machine, now."""
    told = (result.not_timed, *(one.message for one in result.diagnostics))
    return not any(TIMEOUT in text for text in told) and (result.ok or not _OF_THIS_MACHINE.search(result.log))


def keep_final(work: Path, folder: Path, result: CompileResult) -> CompileResult:
    """The same as `keep` for a result that stays true; another one is given back and forgotten."""
    return keep(work, folder, result) if is_final(result) else result


def keep(work: Path, folder: Path, result: CompileResult) -> CompileResult:
    """Move a finished build to its place; of two that finish together either one stays, they are the same."""
    (work / RESULT_FILE).write_text(result.model_dump_json(), encoding="utf-8")
    if folder.exists() and find(folder) is None:
        shutil.rmtree(folder, ignore_errors=True)
    work.chmod(0o755)  # a sandboxed worker may be another user
    with suppress(OSError):  # the other one was first: its folder is not empty
        work.rename(folder)
    if find(folder) is None:
        raise HarnessError(f"the build could not be kept under {folder.parent}: is the disk full or read-only?")
    return result if result.artifact is None else result.model_copy(update={"artifact": folder / result.artifact.name})


@contextmanager
def work_folder(builds: Path) -> Generator[Path]:
    """A folder beside the builds, gone at the end unless it was renamed."""
    builds.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=".work-", dir=builds.resolve()))
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def write_sources(folder: Path, sources: Mapping[str, str]) -> None:
    """Write a solution's files; a path that leaves the folder is refused."""
    for name, text in sources.items():
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise InvalidInput(f"source path {name!r} must be relative and stay inside the solution")
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
