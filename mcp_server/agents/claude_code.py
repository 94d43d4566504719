"""Claude Code: how its program is found, configured and started. What it then says is read by `claude_attempt`.

It gets the lab's tools and those that read and edit files; neither the person's settings nor their servers are read.
"""

import json
import os
import re
import shutil
import tempfile
from importlib.util import find_spec
from pathlib import Path

from mcp_server.agents.agent import AgentCheck, RoleBrief
from mcp_server.agents.claude_attempt import ClaudeAttempt
from mcp_server.agents.claude_lines import SERVER
from toolkits.core.errors import InvalidInput
from toolkits.core.process import run

CREDENTIALS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
ADDRESS = "ANTHROPIC_BASE_URL"
HOME = "CLAUDE_CONFIG_DIR"
INSTALL = "npm install -g @anthropic-ai/claude-code, or pip install claude-agent-sdk, which carries it"
LOGIN = f"claude, then /login; or export {CREDENTIALS[0]}=... before the lab starts"
FILE_TOOLS = ("Read", "Edit", "Write", "Glob", "Grep")
CALL_MS = 3_600_000
ALWAYS = {
    # A failing vendor is the matter of the lab's policy; the client itself would try for minutes.
    "CLAUDE_CODE_MAX_RETRIES": "1",
    # After a refusal it would ask, and pay, once more.
    "CLAUDE_CODE_DISABLE_REFUSAL_RETRY": "1",
    # No program is started that could inherit a key: there is no shell, and its own look at git is off.
    "CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    # Work of the lab may take longer than the patience of the client with a silent server.
    "CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT": "0",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
    "DISABLE_ERROR_REPORTING": "1",
}


class ClaudeCode:
    name = "claude_code"
    keys: tuple[str, ...] = (*CREDENTIALS, ADDRESS)

    def start(self, brief: RoleBrief) -> ClaudeAttempt:
        program = _program()
        if not program:
            raise InvalidInput(f"Claude Code is not installed: {INSTALL}")
        own = not _given(brief.keys) and _login().is_file()
        config = _own_config() if own else brief.home / "claude"
        scratch = brief.home / "tmp"
        for folder in (config, scratch):
            folder.mkdir(parents=True, exist_ok=True)
        servers = brief.home / "mcp.json"
        servers.write_text(_servers(brief.url), encoding="utf-8")
        resumed = brief.session if _exists(config, brief.session) else ""
        environment = {HOME: str(config), "CLAUDE_CODE_TMPDIR": str(scratch), "TMPDIR": str(scratch), "TZ": "UTC"}
        keys = {name: brief.keys[name] for name in self.keys if brief.keys.get(name)}
        command = _command(program, brief, config, servers, resumed)
        return ClaudeAttempt(command, environment | ALWAYS | keys, resumed=bool(resumed))

    async def check(self, keys: dict[str, str]) -> AgentCheck:
        program = _program()
        if not program:
            return AgentCheck(program="", remedy=INSTALL)
        login = _given(keys) or ("by claude /login" if _login().is_file() else "")
        return AgentCheck(program=program, version=await _version(program), login=login, remedy="" if login else LOGIN)


def _command(program: str, brief: RoleBrief, config: Path, servers: Path, resumed: str) -> list[str]:
    options = {
        "--output-format": ["stream-json"],
        "--mcp-config": [str(servers)],
        "--setting-sources": [""],
        "--tools": [",".join(FILE_TOOLS)],
        "--allowedTools": [f"mcp__{SERVER}", "Read", "Glob", "Grep", *_writable(brief)],
        # Its sessions, and a login where there is one, are not for the model.
        "--disallowedTools": [f"Read(/{config}/**)", f"Read(/{brief.home}/**)"],
        "--permission-mode": ["dontAsk"],
        "--model": [brief.model] if brief.model else [],
        "--resume": [resumed] if resumed else [],
        # A second line behind the lab's own cap; it counts this process alone, also when that resumes a session.
        "--max-budget-usd": [f"{brief.usd_left:.6f}"] if brief.usd_left > 0 else [],
    }
    words = [word for name, values in options.items() if values for word in (name, *values)]
    flags = ["--print", "--verbose", "--include-partial-messages", "--strict-mcp-config", "--disable-slash-commands"]
    return [program, *flags, *words, "--", brief.prompt or brief.charter.read_text(encoding="utf-8")]


def _writable(brief: RoleBrief) -> list[str]:
    """Rules of what it may edit; a path from the root begins with two slashes, and Edit means Write too."""
    return [f"Edit(/{brief.worktree}/**)", f"Edit(/{brief.folder / 'notes.md'})"]


def _servers(url: str) -> str:
    lab = {
        "type": "http",
        "url": url,
        "headers": {"Authorization": "Bearer ${KERNEL_LAB_TOKEN}"},
        "alwaysLoad": True,
        "timeout": CALL_MS,
    }
    return json.dumps({"mcpServers": {SERVER: lab}}, indent=1)


def _exists(config: Path, session: str) -> bool:
    """Whether there is something to resume: one that was killed early has left nothing."""
    return bool(session) and any(config.glob(f"projects/*/{session}.jsonl"))


def _program() -> str:
    """Found without importing the package that may carry it."""
    spec = find_spec("claude_agent_sdk")
    carried = Path(spec.origin).parent / "_bundled" / "claude" if spec and spec.origin else None
    return shutil.which("claude") or (str(carried) if carried and carried.is_file() else "")


def _given(keys: dict[str, str]) -> str:
    """By which of the keys it would be logged in; an address alone may be a gateway that asks for none."""
    return next((f"by {name}" for name in (*CREDENTIALS, ADDRESS) if keys.get(name)), "")


def _own_config() -> Path:
    """The person's."""
    return Path(os.environ.get(HOME) or Path.home() / ".claude")


def _login() -> Path:
    """Only its existence is looked at."""
    return _own_config() / ".credentials.json"


async def _version(program: str) -> str:
    with tempfile.TemporaryDirectory() as empty:
        environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": empty}
        done = await run([program, "--version"], cwd=Path(empty), timeout_s=20, env=environment)
    found = re.search(r"^\d+\.\d\S*", done.output, re.MULTILINE)
    return found[0] if found else ""


AGENT = ClaudeCode()
