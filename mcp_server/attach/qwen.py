"""Qwen Code. Its `mcp remove` leaves traces, so its settings are edited."""

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
    """`trust`: no question before a call."""
    how: Json = {"httpUrl": to.url, "headers": bearer(f"${{{TOKEN_VARIABLE}}}")}
    if not to.url:
        how = {"command": to.command[0], "args": list(to.command[1:])}
    return how | {"timeout": CALL_MS, "trust": True}


def _file(scope: Scope) -> ConfigFile:
    folder = Path.cwd() if scope == "project" else Path.home()
    return ConfigFile(folder / ".qwen" / "settings.json", "mcpServers", jsonc, of_client=("$version",))


async def _seen(scope: Scope) -> Seen:
    lines = (await asked("qwen", "mcp", "list")).output.splitlines()
    line = next((line for line in lines if f" {SERVER}: " in line), "it lists no such server")
    if scope == "project" and line.endswith("Pending approval"):
        return Seen(state="pending")
    return Seen(state="connected") if line.endswith("- Connected") else Seen(state="failed", words=line)


CLIENT = Client(
    title="Qwen Code",
    program="qwen",
    scopes=("user", "project"),
    entry=_entry,
    file=_file,
    seen=_seen,
    install="npm install -g @qwen-code/qwen-code",
    first_words=f"Use {SERVER}: list the tasks, then make kmeans_assign faster.",
    approval=f"`qwen mcp approve {SERVER}` in this folder",
)
