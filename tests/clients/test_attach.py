"""`kernel-lab attach` and `detach` where something is not as it should be. The plain way is in test_benchmark.py."""

import json
from pathlib import Path

import pytest

from tests.clients.people import CODEX, Person

pytestmark = pytest.mark.slow
THEIRS = '[mcp_servers.kernel-lab]\ncommand = "/theirs"\n'
DEAF = """#!/bin/sh
[ "$1" = app-server ] && exit 1
exec {codex} "$@"
"""


def codex_user(home: Path) -> Person:
    person = Person("codex", home)
    person.behind("http://127.0.0.1:9")
    return person


def test_what_would_be_written_is_shown_and_what_does_not_connect_is_not_written(tmp_path: Path) -> None:
    person = codex_user(tmp_path)
    before = person.config
    shown = person.lab("attach", "codex", "--print", "--http", "http://127.0.0.1:9/mcp")
    assert shown.startswith(f"# into {tmp_path}/.codex/config.toml\n\n\n[mcp_servers.kernel-lab]\nurl = ")
    refused = person.lab_refuses("attach", "codex", "--http", "http://127.0.0.1:9/mcp")
    assert "no lab answers at http://127.0.0.1:9/mcp" in refused and "kernel-lab serve --http" in refused
    assert "has no scope 'local': choose user or project" in person.lab_refuses("attach", "codex", "--scope", "local")
    assert "there is no `opencode` on the PATH: install it (npm" in person.lab_refuses("attach", "opencode")
    assert person.config == before and "had no kernel-lab here" in person.lab("detach", "codex")


def test_a_client_that_does_not_reach_the_lab_is_left_as_it_was(tmp_path: Path) -> None:
    person = codex_user(tmp_path)
    before = person.config
    (tmp_path / "bin" / "codex").unlink()
    (tmp_path / "bin" / "codex").write_text(DEAF.format(codex=CODEX.program()), encoding="utf-8")
    (tmp_path / "bin" / "codex").chmod(0o755)
    refused = person.lab_refuses("attach", "codex")
    assert "the lab answers, but Codex does not reach it" in refused and "nothing was left" in refused
    assert person.config == before


def test_attaching_again_replaces_an_earlier_attach_and_never_an_entry_of_the_person(tmp_path: Path) -> None:
    person = codex_user(tmp_path)
    before = person.config
    assert "connected, by its own word" in person.lab("attach", "codex")
    assert "connected, by its own word" in person.lab("--root", str(tmp_path / "other"), "attach", "codex")
    assert str(tmp_path / "other") in person.config.decode() and str(person.root) not in person.config.decode()
    person.lab("detach", "codex")
    assert person.config == before
    (tmp_path / ".codex/config.toml").write_text(THEIRS, encoding="utf-8")
    assert "that `attach` did not write" in person.lab_refuses("attach", "codex")
    assert person.config.decode() == THEIRS


def test_a_project_is_given_the_lab_in_a_file_that_goes_with_it(tmp_path: Path) -> None:
    person = Person("claude", tmp_path)
    said = person.lab("attach", "claude", "--scope", "project")
    assert "will ask you before it connects" in said and "start `claude` in this folder once" in said
    entry = json.loads((person.folder / ".mcp.json").read_text(encoding="utf-8"))["mcpServers"]["kernel-lab"]
    assert entry["alwaysLoad"] is True and entry["args"][-2:] == ["--root", str(person.root)]
    person.lab("detach", "claude")
    assert list(person.folder.iterdir()) == []


def test_for_any_other_client_the_entry_is_printed_after_it_was_tried(tmp_path: Path) -> None:
    printed = json.loads(codex_user(tmp_path).lab("attach", "json"))
    assert printed["mcpServers"]["kernel-lab"]["args"][:4] == ["-P", "-m", "mcp_server", "serve"]
