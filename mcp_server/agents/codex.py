"""Codex: how its program is found, configured and started. What it then says is read by `codex_attempt`.

Everything is on its command line, and neither the person's settings nor their servers are read. It reads files through
its shell, so that stays on: in its own sandbox, without network, writing only in the worktree, and without keys.
"""

import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

from mcp_server.agents.agent import AgentCheck, RoleBrief
from mcp_server.agents.codex_attempt import SERVER, CodexAttempt
from mcp_server.agents.codex_log import SessionLog
from toolkits.core.errors import InvalidInput
from toolkits.core.process import run

KEY, ADDRESS = "OPENAI_API_KEY", "OPENAI_BASE_URL"
INSTALL = "npm install -g @openai/codex, or pip install openai-codex-cli-bin"
LOGIN = f"codex login, or export {KEY}=... before the lab starts"
PROVIDER = "lab"
CALL_S = 3600
RETRIES = 1
"""Of Codex's own: what to do about a failing vendor is the lab's policy."""
OFF = (
    "apps",
    "browser_use",
    "computer_use",
    "goals",
    "hooks",
    "image_generation",
    "in_app_browser",
    "memories",
    "multi_agent",
    "plugins",
    "remote_plugin",
    "shell_snapshot",
    "skill_search",
    "tool_suggest",
    "unbounded_connection_retries",
    "workspace_dependencies",
    "worktrees",
)
"""Features that load other tools, ask other hosts at the start, or work on in agents of their own."""

Toml: TypeAlias = "str | int | bool | Mapping[str, Toml]"


class Codex:
    name = "codex"
    keys: tuple[str, ...] = (KEY, ADDRESS)

    def start(self, brief: RoleBrief) -> CodexAttempt:
        program = _program()
        if not program:
            raise InvalidInput(f"Codex is not installed: {INSTALL}")
        own = not (brief.keys.get(KEY) or brief.keys.get(ADDRESS))
        if own and not _login().is_file():
            raise InvalidInput(f"Codex has neither a key nor a login: {LOGIN}")
        home = _own_home() if own else brief.home / "codex"
        scratch = brief.home / "tmp"
        for folder in (home, scratch):
            folder.mkdir(parents=True, exist_ok=True)
        key = {"CODEX_API_KEY" if not brief.keys.get(ADDRESS) else KEY: brief.keys.get(KEY, "")}
        # Times in its messages are local ones without a zone.
        environment = {"CODEX_HOME": str(home), "TMPDIR": str(scratch), "TZ": "UTC"} | (
            key if brief.keys.get(KEY) else {}
        )
        log = SessionLog(home, brief.session, brief.model)
        return CodexAttempt(_command(program, brief, home), environment, brief.session, log)

    async def check(self, keys: dict[str, str]) -> AgentCheck:
        program = _program()
        if not program:
            return AgentCheck(program="", remedy=INSTALL)
        login = next((f"by {name}" for name in (KEY, ADDRESS) if keys.get(name)), "")
        login = login or ("by codex login" if _login().is_file() else "")
        return AgentCheck(program=program, version=await _version(program), login=login, remedy="" if login else LOGIN)


def _command(program: str, brief: RoleBrief, home: Path) -> list[str]:
    settings = [part for name, value in _settings(brief, home).items() for part in ("-c", f"{name}={_toml(value)}")]
    flags = ["--json", "--skip-git-repo-check", "--ignore-user-config", "--ignore-rules", *settings]
    prompt = brief.prompt or brief.charter.read_text(encoding="utf-8")
    resume = ["resume", *flags, "--", brief.session] if brief.session else [*flags, "--"]
    return [program, "exec", *resume, prompt]


def _settings(brief: RoleBrief, home: Path) -> Mapping[str, Toml]:
    model: Mapping[str, Toml] = {"model": brief.model} if brief.model else {}
    lab: Toml = {
        "url": brief.url,
        "bearer_token_env_var": "KERNEL_LAB_TOKEN",
        "required": True,
        "default_tools_approval_mode": "approve",
        "startup_timeout_sec": 30,
        "tool_timeout_sec": CALL_S,
    }
    # Its sessions, and a login where there is one, are not for the model; temporary files lie in the role's home.
    files: Toml = {str(home): "deny", ":slash_tmp": "read"}
    return {
        **model,
        "model_provider": PROVIDER,
        f"model_providers.{PROVIDER}": _provider(brief.keys),
        f"mcp_servers.{SERVER}": lab,
        "default_permissions": "role",
        "permissions.role": {"extends": ":workspace", "filesystem": files},
        "shell_environment_policy": {"inherit": "core"},
        "approval_policy": "never",
        "web_search": "disabled",
        "project_doc_max_bytes": 0,
        "features": dict.fromkeys(OFF, False),
        "skills": {"bundled": {"enabled": False}},
        "analytics": {"enabled": False},
        "check_for_update_on_startup": False,
    }


def _provider(keys: dict[str, str]) -> Toml:
    """Codex's own vendor under another name, because the retries of the built-in one are fixed; or another address."""
    common: dict[str, Toml] = {
        "name": "OpenAI",
        "wire_api": "responses",
        "request_max_retries": RETRIES,
        "stream_max_retries": RETRIES,
    }
    if not keys.get(ADDRESS):
        return common | {"requires_openai_auth": True}
    return common | {"name": PROVIDER, "base_url": keys[ADDRESS]} | ({"env_key": KEY} if keys.get(KEY) else {})


def _toml(value: Toml) -> str:
    """JSON's strings, numbers and truth values are TOML's; its objects are not."""
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json.dumps(name)}={_toml(each)}" for name, each in value.items()) + "}"
    return json.dumps(value, ensure_ascii=False)


def _program() -> str:
    """Found without importing the package that may carry it."""
    spec = find_spec("codex_cli_bin")
    carried = Path(spec.origin).parent / "bin" / "codex" if spec and spec.origin else None
    return shutil.which("codex") or (str(carried) if carried and carried.is_file() else "")


def _own_home() -> Path:
    """The person's."""
    return Path(os.environ.get("CODEX_HOME") or Path.home() / ".codex")


def _login() -> Path:
    """Only its existence is looked at."""
    return _own_home() / "auth.json"


async def _version(program: str) -> str:
    with tempfile.TemporaryDirectory() as empty:
        environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": empty}
        done = await run([program, "--version"], cwd=Path(empty), timeout_s=20, env=environment)
    found = re.search(r"codex\S* (\d\S*)", done.output)
    return found[1] if found else ""


AGENT = Codex()
