"""The lab put into a client's configuration file and taken out again, to the byte where no one else wrote to it."""

from pathlib import Path

from mcp_server.attach.client import SERVER, ConfigFile, Edit
from mcp_server.attach.kept import Kept, copy_before, forget, keep, kept_of, read, write
from toolkits.core.errors import InvalidInput
from toolkits.core.schema import Json


def planned(config: ConfigFile, entry: Json) -> Edit:
    """The change, seen to mean what it should; the file stays as it is."""
    text = read(config.path) or ""
    held = _held(config, text)
    try:
        edit = config.form.added(text, config.parent, SERVER, entry)
    except InvalidInput as error:
        raise InvalidInput(f"{config.path} {error}: mend it first") from error
    wanted = held | {config.parent: held.get(config.parent, {}) | {SERVER: entry}}
    if _means(config, edit.text, wanted):
        return edit
    block = config.form.added("", config.parent, SERVER, entry).snippet
    raise InvalidInput(f"{config.path} is written in a way that only a person should change: put this in\n{block}")


def holds(config: ConfigFile) -> bool:
    """Whether the file lists a server of our name, whoever wrote it there."""
    return SERVER in _held(config, read(config.path) or "").get(config.parent, {})


def put(config: ConfigFile, edit: Edit) -> None:
    """Write the change; what was there is kept first."""
    path = config.path
    made = tuple(folder for folder in path.parents if not folder.exists())
    keep(Kept(file=path, before=read(path), made=made, after=edit.text, snippet=edit.snippet))
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, edit.text)


def take(config: ConfigFile) -> Path | None:
    """Take the entry out. A path: the file was rewritten meanwhile, so what it was before is kept there."""
    kept, text = kept_of(config.path), read(config.path)
    copy: Path | None = None
    if text is not None:
        left, exact = _left(config, kept, text)
        _put_back(config.path, kept, left)
        copy = copy_before(config.path, kept.before) if kept and kept.before and not exact else None
    forget(config.path)
    return copy


def _left(config: ConfigFile, kept: Kept | None, text: str) -> tuple[str | None, bool]:
    """What stays (None: no file), and whether only our own words went."""
    if kept and text == kept.after:
        return kept.before, True
    cut = _cut(config, kept.snippet, text) if kept else None
    left = config.form.without(text, config.parent, SERVER) if cut is None else cut
    made_by_us = kept is not None and kept.before is None
    return (None if made_by_us and _empty(config, left) else left), cut is not None


def _cut(config: ConfigFile, snippet: str, text: str) -> str | None:
    """The text without our words, if they are there once and nothing else hangs on them."""
    held = _held(config, text)
    wanted = held | {config.parent: {name: at for name, at in held[config.parent].items() if name != SERVER}}
    for words in (snippet, snippet.removeprefix("\n")):  # a person's own line may follow ours now
        left = text.replace(words, "")
        if text.count(words) == 1 and _means(config, left, wanted):
            return left
    return None


def _held(config: ConfigFile, text: str) -> Json:
    try:
        return config.form.parsed(text)
    except InvalidInput as error:
        raise InvalidInput(f"{config.path} {error}: mend it first") from error


def _means(config: ConfigFile, text: str, wanted: Json) -> bool:
    """A list of servers that is empty is as good as none."""
    try:
        return {config.parent: {}} | config.form.parsed(text) == {config.parent: {}} | wanted
    except InvalidInput:
        return False


def _empty(config: ConfigFile, text: str) -> bool:
    held = config.form.parsed(text)
    return all(key in config.of_client or (key == config.parent and not value) for key, value in held.items())


def _put_back(path: Path, kept: Kept | None, left: str | None) -> None:
    if left is not None:
        write(path, left)
        return
    path.unlink()
    for folder in kept.made if kept else ():
        if any(folder.iterdir()):
            break
        folder.rmdir()
