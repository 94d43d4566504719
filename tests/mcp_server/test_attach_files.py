"""Entries in files that people write: put in beside what is there, and taken out to the byte."""

from pathlib import Path

import pytest

from mcp_server.attach import files, jsonc, toml
from mcp_server.attach.client import SERVER, ConfigFile
from toolkits.core.errors import InvalidInput
from toolkits.core.schema import Json

ENTRY: Json = {"command": "/a b/python", "args": ["-m", 'x"y'], "timeout": 3_600_000, "trust": True}
JSON = {
    "nothing": "",
    "empty": "{}",
    "spread": "{\n}\n",
    "other members": '{\n  "theme": "dark"\n}\n',
    "other servers": '{"mcpServers": {"a": {"command": "x"}}, "z": 1}',
    "no servers yet": '{\n  "mcpServers": {\n  }\n}',
    "comments": '// {"mcpServers": 1}\n{\n  /* "b" */ "a": "// no comment", // yes\n  "mcpServers": {"q": {},},\n}\n',
    "windows": '{\r\n  "a": [1, 2,],\r\n}\r\n',
}
TOML = {
    "nothing": "",
    "no line end": 'model = "x"',
    "comment at the end": "[a]\nb = 1\n# mine\n\n",
    "other servers": '[mcp_servers.a]\ncommand = "x"\n[mcp_servers.a.env]\nK = "[mcp_servers.kernel-lab]"\n',
    "dotted": 'mcp_servers.a.command = "x"\n',
}


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def config(folder: Path, form: str, text: str | None) -> ConfigFile:
    """A file that holds the text; None: that is not there, nor is its folder."""
    path = folder / "config" / f"settings.{form}"
    if text is not None:
        path.parent.mkdir()
        path.write_bytes(text.encode())
    if form == "json":
        return ConfigFile(path, "mcpServers", jsonc, of_client=("$version",))
    return ConfigFile(path, "mcp_servers", toml)


def attached(file: ConfigFile) -> str:
    files.put(file, files.planned(file, ENTRY))
    assert files.holds(file)
    return file.path.read_bytes().decode()


@pytest.mark.parametrize(("form", "text"), [("json", t) for t in JSON.values()] + [("toml", t) for t in TOML.values()])
def test_an_entry_joins_what_is_there_and_leaves_it_as_it_was(tmp_path: Path, form: str, text: str) -> None:
    file = config(tmp_path, form, text)
    file.path.chmod(0o640)
    held = file.form.parsed(text)
    written = attached(file)
    assert file.form.parsed(written)[file.parent] == held.get(file.parent, {}) | {SERVER: ENTRY}
    assert file.form.parsed(file.form.without(written, file.parent, SERVER)).get(file.parent, {}) == held.get(
        file.parent, {}
    )
    assert files.take(file) is None
    assert file.path.read_bytes() == text.encode() and file.path.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("form", ["json", "toml"])
def test_a_file_that_was_not_there_is_not_there_afterwards_nor_is_its_folder(tmp_path: Path, form: str) -> None:
    file = config(tmp_path, form, None)
    attached(file)
    files.take(file)
    assert not file.path.parent.exists()


def test_what_a_person_changes_meanwhile_stays(tmp_path: Path) -> None:
    file = config(tmp_path, "toml", "a = 1")
    attached(file)
    file.path.write_text(file.path.read_text(encoding="utf-8").replace("a = 1", "a = 2") + "[mine]\nb = 3\n")
    assert files.take(file) is None
    assert file.form.parsed(file.path.read_text(encoding="utf-8")) == {"a": 2, "mine": {"b": 3}}


def test_a_file_that_its_client_rewrote_loses_the_entry_alone_and_what_it_was_is_kept(tmp_path: Path) -> None:
    before = '{"theme": "dark", /* mine */ "mcpServers": {}}'
    file = config(tmp_path, "json", before)
    attached(file)
    rewritten = f'{{"$version": 4, "mcpServers": {{"{SERVER}": {{"command": "x"}}}}, "theme": "dark"}}'
    file.path.write_text(rewritten, encoding="utf-8")
    copy = files.take(file)
    assert file.path.read_text(encoding="utf-8") == '{"$version": 4, "mcpServers": {}, "theme": "dark"}'
    assert copy and copy.read_text(encoding="utf-8") == before and copy.stat().st_mode & 0o077 == 0


def test_what_a_client_adds_to_a_file_of_ours_does_not_keep_it(tmp_path: Path) -> None:
    file = config(tmp_path, "json", None)
    written = attached(file)
    file.path.write_text(written.replace("{", '{"$version": 4,', 1), encoding="utf-8")
    files.take(file)
    assert not file.path.exists()


def test_a_linked_file_stays_a_link(tmp_path: Path) -> None:
    file = config(tmp_path, "json", "{}")
    (tmp_path / "dotfiles.json").write_text("{}", encoding="utf-8")
    file.path.unlink()
    file.path.symlink_to(tmp_path / "dotfiles.json")
    attached(file)
    assert file.path.is_symlink() and SERVER in (tmp_path / "dotfiles.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("form", "text", "complaint"),
    [
        ("json", "{", "mend it first"),
        ("json", "[]", "holds no JSON object"),
        ("json", '{"mcpServers": []}', "which is no object"),
        ("toml", "a = ", "mend it first"),
        ("toml", "mcp_servers = {}", r"only a person should change: put this in\n\[mcp_servers.kernel-lab\]"),
    ],
)
def test_a_file_that_cannot_be_changed_safely_is_left_and_the_person_told(
    tmp_path: Path, form: str, text: str, complaint: str
) -> None:
    file = config(tmp_path, form, text)
    with pytest.raises(InvalidInput, match=complaint):
        files.planned(file, ENTRY)
    assert file.path.read_text(encoding="utf-8") == text
