"""Attaching and detaching, top to bottom: try the lab, write the entry, ask the client, and undo what does not work."""

import shlex
from pathlib import Path

import anyio

from mcp_server.attach import files
from mcp_server.attach.client import SERVER, Client, Connection, Scope, Seen, asked, program_of
from mcp_server.attach.connection import tools_at
from mcp_server.attach.kept import kept_of
from toolkits.core.errors import InvalidInput, LabError
from toolkits.core.schema import Json, Record


class Attached(Record):
    """That a client has the lab now, and what it says of it."""

    place: str
    """Where the entry stands."""
    tools: list[str]
    seen: Seen


class Detached(Record):
    """Where the lab was taken out, and copies of files that could not be put back to the byte."""

    places: list[str]
    copies: list[Path]


def shown(client: Client, scope: Scope, to: Connection) -> str:
    """Exactly what `attach` would write or run."""
    entry = client.entry(to)
    if config := client.file(scope):
        return f"# into {config.path}\n{files.planned(config, entry).snippet}"
    assert client.own
    return f"{shlex.join([client.program, *client.own.add(scope, entry)])}\n"


async def attach(client: Client, scope: Scope, to: Connection) -> Attached:
    """Raises LabError with the remedy, and leaves nothing behind, unless the client really reaches the lab."""
    program_of(client)
    tools = await tools_at(to)
    place = await _put(client, scope, to)
    try:
        seen = await client.seen(scope)
        if seen.state == "failed":
            raise LabError(_refused(client, seen, to))
    except BaseException:
        with anyio.CancelScope(shield=True):
            await _take(client, scope)
        raise
    return Attached(place=place, tools=tools, seen=seen)


async def detach(client: Client, scopes: tuple[Scope, ...]) -> Detached:
    """Undo the attach in each of the scopes in which the client has the lab."""
    places: list[str] = []
    copies: list[Path] = []
    for scope in scopes:
        place, copy = await _take(client, scope)
        places += [place] if place else []
        copies += [copy] if copy else []
    return Detached(places=places, copies=copies)


async def _put(client: Client, scope: Scope, to: Connection) -> str:
    """Where the entry stands now. An earlier attach is replaced; an entry that someone else wrote is theirs."""
    entry, config = client.entry(to), client.file(scope)
    if config is None:
        return await _put_by(client, scope, entry)
    if files.holds(config):
        if kept_of(config.path) is None:
            raise InvalidInput(_not_ours(client, scope, str(config.path)))
        files.take(config)
    files.put(config, files.planned(config, entry))
    return str(config.path)


async def _put_by(client: Client, scope: Scope, entry: Json) -> str:
    """The same by the client itself."""
    assert client.own
    command = client.own.add(scope, entry)
    done = await asked(client.program, *command)
    if done.returncode != 0 and await client.own.ours(scope):
        await _take(client, scope)
        done = await asked(client.program, *command)
    if "already exists" in done.output:
        raise InvalidInput(_not_ours(client, scope, _own_place(client, scope)))
    if done.returncode != 0:
        line = shlex.join([client.program, *command])
        raise LabError(f"{line} did not work ({done.output.strip()[:300]}): try it by hand")
    return _own_place(client, scope)


async def _take(client: Client, scope: Scope) -> tuple[str, Path | None]:
    """Where the entry was (empty: nowhere), and the copy of what its file was, if that could not be put back."""
    if config := client.file(scope):
        return (str(config.path), files.take(config)) if files.holds(config) else ("", None)
    assert client.own
    done = await asked(client.program, *client.own.remove(scope))
    return (_own_place(client, scope) if done.returncode == 0 else ""), None


def _own_place(client: Client, scope: Scope) -> str:
    return f"{client.title}'s {scope} configuration"


def _not_ours(client: Client, scope: Scope, place: str) -> str:
    return (
        f"{place} has a server {SERVER!r} that `attach` did not write: rename it there, or take it out with "
        f"`kernel-lab detach {client.program} --scope {scope}`"
    )


def _refused(client: Client, seen: Seen, to: Connection) -> str:
    remedy = f"update it ({client.install})" if not to.url else "export the server's token where the client runs"
    return (
        f"the lab answers, but {client.title} does not reach it ({seen.words[:300]}); nothing was left in its "
        f"configuration: {remedy}, and attach again"
    )
