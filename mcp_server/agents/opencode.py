"""opencode: how its program is found, configured and started. What it then says is read by `opencode_attempt`.

Its settings are one file in the role's HOME; neither the person's settings nor those of a project are read. A small
plugin ends it where it would try for ever, since it has no limit of its own.
"""

import json
import os
import re
import shutil
import tempfile
from pathlib import Path

from mcp_server.agents.agent import AgentCheck, RoleBrief
from mcp_server.agents.opencode_attempt import SERVER, OpencodeAttempt
from toolkits.core.errors import InvalidInput
from toolkits.core.process import run
from toolkits.core.schema import Json

INSTALL = "npm install -g opencode-ai"
VENDORS = {"anthropic": "ANTHROPIC"}
"""Providers that have variables of their own; those of all others are OPENAI_*."""
OTHERS = "OPENAI"
LOGIN = "opencode auth login, or export OPENAI_API_KEY=... (or ANTHROPIC_API_KEY=...) before the lab starts"
CALL_MS = 3_600_000
CONTEXT, REPLY = 128_000, 16_384
"""Tokens that a model behind an address is taken to have room for."""
PROMPT_FILE = "KERNEL_LAB_PROMPT_FILE"
"""What the watch puts in the place of the quoted prompt."""
WATCH = Path(__file__).with_name("opencode_watch.js")
QUIET = {
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_CLAUDE_CODE": "1",
    "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
    "OPENCODE_DISABLE_EXTERNAL_SKILLS": "1",
    "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
    "OPENCODE_DISABLE_PROJECT_CONFIG": "1",
    "npm_config_offline": "true",  # or it installs a package into its settings at every start
}


class Opencode:
    name = "opencode"
    keys: tuple[str, ...] = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL")

    def start(self, brief: RoleBrief) -> OpencodeAttempt:
        program = shutil.which("opencode")
        if not program:
            raise InvalidInput(f"opencode is not installed: {INSTALL}")
        provider, _, model = brief.model.partition("/")
        if not (provider and model):
            raise InvalidInput("opencode needs a provider and a model: opencode:openai/gpt-5.1 or another such pair")
        key, address = (f"{VENDORS.get(provider, OTHERS)}_{part}" for part in ("API_KEY", "BASE_URL"))
        own = not (brief.keys.get(key) or brief.keys.get(address))
        if own and not _login().is_file():
            raise InvalidInput(f"opencode has neither a key nor a login for {provider}: {LOGIN}")
        given = {key: brief.keys[key]} if brief.keys.get(key) else {}
        settings = _settings(brief, _provider(provider, model, key if given else "", brief.keys.get(address, "")))
        environment = QUIET | _files(brief, settings) | _folders(brief.home, own) | given
        return OpencodeAttempt(_command(program, brief), environment, model)

    async def check(self, keys: dict[str, str]) -> AgentCheck:
        program = shutil.which("opencode")
        if not program:
            return AgentCheck(program="", remedy=INSTALL)
        login = next((f"by {name}" for name in self.keys if keys.get(name)), "")
        login = login or ("by opencode auth" if _login().is_file() else "")
        return AgentCheck(program=program, version=await _version(program), login=login, remedy="" if login else LOGIN)


def _command(program: str, brief: RoleBrief) -> list[str]:
    session = ["--session", brief.session] if brief.session else []
    # Without a title it would ask a model for one, which it does not account for.
    return [program, "run", "--format", "json", "--title", f"role {brief.role}", *session, "--", _prompt(brief)]


def _prompt(brief: RoleBrief) -> str:
    return brief.prompt or brief.charter.read_text(encoding="utf-8")


def _files(brief: RoleBrief, settings: Json) -> dict[str, str]:
    """Written to the role's HOME, and by which variables they are found."""
    brief.home.mkdir(parents=True, exist_ok=True)
    config, prompt = brief.home / "opencode.json", brief.home / "prompt.md"
    config.write_text(json.dumps(settings, indent=2), encoding="utf-8")
    prompt.write_text(_prompt(brief), encoding="utf-8")
    return {"OPENCODE_CONFIG": str(config), PROMPT_FILE: str(prompt)}


def _settings(brief: RoleBrief, provider: Json) -> Json:
    lab = {
        "type": "remote",
        "url": brief.url,
        "headers": {"Authorization": "Bearer {env:KERNEL_LAB_TOKEN}"},
        "oauth": False,
        "enabled": True,
        "timeout": CALL_MS,
    }
    allowed = (f"{SERVER}_*", "read", "edit", "glob", "grep", "list")
    return {
        "provider": provider,
        "enabled_providers": list(provider),
        "model": brief.model,
        "small_model": brief.model,
        "mcp": {SERVER: lab},
        "permission": {"*": "deny", **dict.fromkeys(allowed, "allow")},
        "plugin": [WATCH.as_uri()],
        "autoupdate": False,
        "share": "disabled",
        "snapshot": False,
        "lsp": False,
        "formatter": False,
    }


def _provider(provider: str, model: str, key: str, address: str) -> Json:
    """A vendor that opencode knows keeps its own protocol; any other name speaks Chat Completions at the address."""
    options: Json = {"apiKey": f"{{env:{key}}}"} if key else {}
    if address and provider in VENDORS:
        options["baseURL"] = address.rstrip("/").removesuffix("/v1") + "/v1"
    elif address:
        options["baseURL"] = address
    entry: Json = {"options": options}
    if address and provider not in VENDORS and provider != "openai":
        limit = {"context": CONTEXT, "output": REPLY}
        entry |= {"npm": "@ai-sdk/openai-compatible", "models": {model: {"tool_call": True, "limit": limit}}}
    return {provider: entry}


def _folders(home: Path, own: bool) -> dict[str, str]:
    """All its folders are the role's, but for the one with the person's login where that is used."""
    names = {"XDG_CONFIG_HOME": "config", "XDG_CACHE_HOME": "cache", "XDG_STATE_HOME": "state"}
    folders = {variable: str(home / "opencode" / name) for variable, name in names.items()}
    return folders | {"XDG_DATA_HOME": str(_own_data() if own else home / "opencode" / "data")}


def _own_data() -> Path:
    """The person's."""
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")


def _login() -> Path:
    """Only its existence is looked at."""
    return _own_data() / "opencode" / "auth.json"


async def _version(program: str) -> str:
    with tempfile.TemporaryDirectory() as empty:
        environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": empty} | QUIET
        done = await run([program, "--version"], cwd=Path(empty), timeout_s=20, env=environment)
    found = re.search(r"^\d+\.\d\S*", done.output, re.MULTILINE)
    return found[0] if found else ""


AGENT = Opencode()
