"""What the command refuses, and what it says when it cannot write: one line each."""

from pathlib import Path

import pytest

from supervisor import files
from tests.supervisor.runs import evolve
from toolkits.core.errors import LabError


def test_a_file_is_replaced_whole_and_its_folder_made(tmp_path: Path) -> None:
    for text in ("old", "new"):
        files.write(tmp_path / "deep" / "page.md", text)
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["page.md"]
    assert (tmp_path / "deep" / "page.md").read_text() == "new"


def test_a_place_that_cannot_be_written_is_named_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LabError, match=r"page\.md cannot be written: .*same command resumes") as caught:
        files.write(tmp_path / "file" / "page.md", "text")
    assert "\n" not in str(caught.value)


def test_a_root_that_cannot_be_written_ends_the_command_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    status, out, err = evolve(tmp_path, "--root", str(tmp_path / "file"))
    assert (status, out) == (2, "")
    assert err == f"error: --root {tmp_path / 'file'} cannot be written: file exists\n"
