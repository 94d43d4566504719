"""The verbs that put the lab into a client's configuration and take it out again."""

import asyncio
import json as jsons
from typing import Annotated, Literal

import typer

from mcp_server.attach.attaching import Attached, shown
from mcp_server.attach.attaching import attach as put_in
from mcp_server.attach.attaching import detach as take_out
from mcp_server.attach.client import SERVER, TOKEN_VARIABLE, Client, ClientName, Connection, Scope, bearer, get_client
from mcp_server.attach.connection import to_started, tools_at
from mcp_server.cli_verbs import settings_of
from toolkits.core.errors import InvalidInput
from toolkits.core.schema import Json

ToClient = Annotated[
    Literal["claude", "codex", "opencode", "qwen", "json"],
    typer.Argument(help="The client; json: print an entry for any other.", show_default=False),
]
FromClient = Annotated[ClientName, typer.Argument(help="The client.", show_default=False)]
InScope = Annotated[
    Scope | None,
    typer.Option(help="user: all folders; project: whoever works in this one; local: you in this one (claude)."),
]


def attach(
    context: typer.Context,
    client: ToClient,
    scope: InScope = None,
    http: Annotated[str, typer.Option(help=f"Address of a running server; its token is in {TOKEN_VARIABLE}.")] = "",
    only_print: Annotated[bool, typer.Option("--print", help="Show what would be written, and write nothing.")] = False,
) -> None:
    """Give your agent the lab: one entry in its configuration, tried out before this ends."""
    to = Connection(url=http) if http else to_started(settings_of(context).root)
    if client == "json":
        _print_entry(to, only_print)
        return
    found = get_client(client)
    chosen = _scope(found, scope)
    if only_print:
        typer.echo(shown(found, chosen, to), nl=False)
        return
    _tell(found, asyncio.run(put_in(found, chosen, to)), f"kernel-lab detach {client} --scope {chosen}", to)


def detach(client: FromClient, scope: InScope = None) -> None:
    """Take the lab out of your agent's configuration; all else stays as it is."""
    found = get_client(client)
    scopes = (_scope(found, scope),) if scope else found.scopes
    done = asyncio.run(take_out(found, scopes))
    for place in done.places:
        typer.echo(f"taken out of {place}")
    for copy in done.copies:
        typer.echo(f"{found.title} had rewritten its file meanwhile; what it was before the attach is kept in {copy}")
    if not done.places:
        typer.echo(f"{found.title} had no {SERVER} here ({', '.join(scopes)})")


def _scope(client: Client, scope: Scope | None) -> Scope:
    if scope is None or scope in client.scopes:
        return scope or client.scopes[0]
    raise InvalidInput(f"{client.title} has no scope {scope!r}: choose {' or '.join(client.scopes)}")


def _print_entry(to: Connection, only_print: bool) -> None:
    """For clients that read `mcpServers` as most do. What is printed is the entry and nothing else."""
    entry: Json = {"type": "stdio", "command": to.command[0], "args": list(to.command[1:])} if to.command else {}
    entry = entry or {"type": "http", "url": to.url, "headers": bearer(f"${{{TOKEN_VARIABLE}}}")}
    typer.echo(jsons.dumps({"mcpServers": {SERVER: entry}}, indent=2))
    if not only_print:
        tools = asyncio.run(tools_at(to))
        typer.echo(f"tried out: it answers with {len(tools)} tools", err=True)


def _tell(client: Client, done: Attached, undo: str, to: Connection) -> None:
    if done.seen.state == "connected":
        typer.echo(f"{client.title} reaches the lab: connected, by its own word, to {len(done.tools)} tools.")
    else:
        typer.echo(f"The lab answers with {len(done.tools)} tools, but {client.title} will ask you before it connects:")
        typer.echo(f"  {client.approval}")
    typer.echo(f"  tools: {', '.join(done.tools)}")
    typer.echo(f"  entry: {done.place}")
    if to.url:
        typer.echo(f"  token: read from {TOKEN_VARIABLE}, which must be set wherever {client.program} is started")
    typer.echo(f"  try:   {client.first_words}")
    typer.echo(f"  undo:  {undo}")
