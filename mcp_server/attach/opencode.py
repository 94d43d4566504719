"""opencode. Its `mcp add` cannot set a time limit, so its JSON with comments is edited."""

import os
from pathlib import Path

from mcp_server.attach import jsonc
from mcp_server.attach.client import (
    CALL_MS,
    SERVER,
    TOKEN_VARIABLE,
    Client,
    ConfigFile,
    Connection,
    Scope,
    Seen,
    asked,
    bearer,
)
from toolkits.core.schema import Json


def _entry(to: Connection) -> Json:
    how: Json = {"type": "local", "command": list(to.command)}
    if to.url:
        how = {"type": "remote", "url": to.url, "headers": bearer(f"{{env:{TOKEN_VARIABLE}}}"), "oauth": False}
    return how | {"enabled": True, "timeout": CALL_MS}


def _file(scope: Scope) -> ConfigFile:
    configs = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    folder = Path.cwd() if scope == "project" else configs / "opencode"
    commented = folder / "opencode.jsonc"
    path = commented if commented.exists() else folder / "opencode.json"
    return ConfigFile(path, "mcp", jsonc, of_client=("$schema",))


async def _seen(scope: Scope) -> Seen:
    lines = (await asked("opencode", "mcp", "list")).output.splitlines()
    at = next((index for index, line in enumerate(lines) if f" {SERVER} " in line), None)
    if at is None:
        return Seen(state="failed", words="it lists no such server")
    if "✓" in lines[at] and "connected" in lines[at]:
        return Seen(state="connected")
    return Seen(state="failed", words=" ".join(line.strip("│●└ ") for line in lines[at : at + 2]))


CLIENT = Client(
    title="opencode",
    program="opencode",
    scopes=("user", "project"),
    entry=_entry,
    file=_file,
    seen=_seen,
    install="npm install -g opencode-ai",
    first_words=f"Use {SERVER}: list the tasks, then make kmeans_assign faster.",
)
