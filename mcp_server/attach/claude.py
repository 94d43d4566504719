"""Claude Code. It keeps most of its configuration in a file of its own working, so it is asked to change that."""

import json
from pathlib import Path

from mcp_server.attach import jsonc
from mcp_server.attach.client import (
    CALL_MS,
    SERVER,
    TOKEN_VARIABLE,
    Client,
    ConfigFile,
    Connection,
    OwnCommands,
    Scope,
    Seen,
    asked,
    bearer,
)
from toolkits.core.schema import Json

_SCOPE_WORDS = {"local": "Local config", "user": "User config", "project": "Project config"}


def _entry(to: Connection) -> Json:
    """`alwaysLoad`: the model sees the tools at once instead of searching for them."""
    how: Json = {"type": "http", "url": to.url, "headers": bearer(f"${{{TOKEN_VARIABLE}}}")}
    if not to.url:
        how = {"type": "stdio", "command": to.command[0], "args": list(to.command[1:]), "env": {}}
    return how | {"timeout": CALL_MS, "alwaysLoad": True}


def _file(scope: Scope) -> ConfigFile | None:
    return ConfigFile(Path.cwd() / ".mcp.json", "mcpServers", jsonc) if scope == "project" else None


def _add(scope: Scope, entry: Json) -> list[str]:
    return ["mcp", "add-json", SERVER, json.dumps(entry), "--scope", scope]


def _remove(scope: Scope) -> list[str]:
    return ["mcp", "remove", SERVER, "--scope", scope]


async def _ours(scope: Scope) -> bool:
    said = (await asked("claude", "mcp", "get", SERVER)).output
    return _SCOPE_WORDS[scope] in said and ("-m mcp_server serve" in said or TOKEN_VARIABLE in said)


async def _seen(scope: Scope) -> Seen:
    """Its exit status is 0 whatever it found, and of several scopes it shows the one that counts."""
    lines = (await asked("claude", "mcp", "get", SERVER)).output.splitlines()
    status = next((line for line in lines if line.strip().startswith("Status:")), "")
    issue = next((line.partition(":")[2].strip() for line in lines if line.strip().startswith("Issue:")), "")
    if scope == "project" and "Pending" in status:
        return Seen(state="pending")
    return Seen(state="connected") if "✔" in status else Seen(state="failed", words=issue or " ".join(lines))


CLIENT = Client(
    title="Claude Code",
    program="claude",
    scopes=("local", "user", "project"),
    entry=_entry,
    file=_file,
    seen=_seen,
    install="npm install -g @anthropic-ai/claude-code",
    first_words=f"/mcp__{SERVER}__optimise kmeans_assign",
    approval="start `claude` in this folder once and approve it there",
    own=OwnCommands(_add, _remove, _ours),
)
