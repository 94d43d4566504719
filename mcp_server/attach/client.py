"""What a client is to the lab: its program, its files, how an entry reads, its own word. Knows no client."""

import re
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Literal, Protocol, cast

from toolkits.core import process
from toolkits.core.errors import LabError
from toolkits.core.schema import Json, Record

Scope = Literal["user", "project", "local"]
"""For all of the person's folders, for whoever works in this one, for the person in this one."""
ClientName = Literal["claude", "codex", "opencode", "qwen"]

SERVER = "kernel-lab"
"""What the lab is called in every client."""
TOKEN_VARIABLE = "KERNEL_LAB_ADMIN_TOKEN"
"""Holds the token of a server that is reached over HTTP; configurations name it and never hold the token."""
CALL_MS = 3_600_000
"""No tool holds a call longer than 50 s; the limit is for a machine that sleeps meanwhile."""
START_S = 60
ASK_S = 120.0
"""What a client may take to start, to start the server and to answer."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Connection(Record):
    """How a client reaches the lab: by starting it, or at the address of one that runs."""

    command: tuple[str, ...] = ()
    url: str = ""


class Seen(Record):
    """What a client itself says of its connection to the lab."""

    state: Literal["connected", "pending", "failed"]
    """`pending`: it will ask the person first."""
    words: str = ""
    """Its own, as far as it says why."""


@dataclass(frozen=True)
class Edit:
    """A text after an addition, and what was put into it."""

    text: str
    snippet: str


class Form(Protocol):
    """How a configuration is written. One module each: jsonc.py and toml.py."""

    def parsed(self, text: str) -> Json:
        """What it says; raises InvalidInput."""
        ...

    def added(self, text: str, parent: str, name: str, value: Json) -> Edit:
        """The text with one entry more in `parent`, and not a character less."""
        ...

    def without(self, text: str, parent: str, name: str) -> str:
        """The text with that entry gone."""
        ...


@dataclass(frozen=True)
class ConfigFile:
    """A file of a client and where in it servers are listed."""

    path: Path
    parent: str
    form: Form
    of_client: tuple[str, ...] = ()
    """Members that the client adds by itself: a file of ours that holds nothing else is empty."""


@dataclass(frozen=True)
class OwnCommands:
    """Arguments by which a client changes a file of its own working, which is no one else's to edit."""

    add: Callable[[Scope, Json], list[str]]
    remove: Callable[[Scope], list[str]]
    ours: Callable[[Scope], Awaitable[bool]]
    """Whether the entry that is there is one that `attach` makes."""


@dataclass(frozen=True)
class Client:
    """One client. A file each, ending in `CLIENT = ...`."""

    title: str
    program: str
    scopes: tuple[Scope, ...]
    """The first is meant where none is named."""
    entry: Callable[[Connection], Json]
    file: Callable[[Scope], ConfigFile | None]
    """None: that scope is changed by `own`."""
    seen: Callable[[Scope], Awaitable[Seen]]
    install: str
    first_words: str
    """What a person may try first."""
    approval: str = ""
    """What a person does about a pending connection."""
    own: OwnCommands | None = None


def get_client(name: ClientName) -> Client:
    return cast(Client, import_module(f"mcp_server.attach.{name}").CLIENT)


def program_of(client: Client) -> str:
    if found := shutil.which(client.program):
        return found
    raise LabError(f"there is no `{client.program}` on the PATH: install it ({client.install}) or open a new terminal")


async def asked(program: str, *arguments: str) -> process.Completed:
    """Run the client as the person would, here; what it prints without colours."""
    command = [shutil.which(program) or program, *arguments]
    done = await process.run(command, cwd=Path.cwd(), timeout_s=ASK_S)
    return process.Completed(done.returncode, _COLOUR.sub("", done.output), done.seconds)


def bearer(token: str) -> Json:
    return {"Authorization": f"Bearer {token}"}
