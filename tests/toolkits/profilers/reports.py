"""What the tests of the report readers share: where recordings lie, and the way in that everybody uses."""

from pathlib import Path

from toolkits.core.profilers import digest
from toolkits.core.schema import KernelProfile, ProfileReport

DATA = Path(__file__).parents[2] / "data"
SHARED = Path(__file__).parents[4] / "shared/data/profiles"
"""Recordings of others, which are not part of this repository."""


def read(path: Path) -> ProfileReport:
    return digest.of_content(path, digest.content_of(path))


def read_as(folder: Path, name: str, content: str | bytes) -> ProfileReport:
    """The report in a file of this name and content."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read(path)


def kernel(report: ProfileReport, name: str) -> KernelProfile:
    [found] = [one for one in report.kernels if one.name.startswith(name)]
    return found
