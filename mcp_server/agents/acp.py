"""Any agent that speaks the Agent Client Protocol: its command line stands where others have a model.

`acp:opencode acp` starts opencode so, `acp:/path/to/agent --flag` another. This file is the adapter; the client of the
protocol is `acp_program`. What such an agent costs is known when it tells: some do so only at the end of a turn.
"""

import json
import shlex
import shutil
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from mcp_server.agents.agent import AgentCheck, RoleBrief
from mcp_server.agents.own_program import ProgramAttempt
from toolkits.core.errors import InvalidInput
from toolkits.core.schema import Record

INSTALL = "pip install 'kernel-lab[acp]'"
DISTRIBUTION = "agent-client-protocol"
RESTRAINTS: dict[str, dict[str, str]] = {
    "opencode": {
        "OPENCODE_PERMISSION": json.dumps(
            {"*": "ask"}
            | dict.fromkeys(("read", "todoread", "todowrite"), "allow")
            | dict.fromkeys(
                ("bash", "external_directory", "question", "skill", "task", "webfetch", "websearch"), "deny"
            )
        ),
        "OPENCODE_DISABLE_PROJECT_CONFIG": "1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "npm_config_offline": "true",
    }
}
"""What agents that would not ask by themselves must be told, so that every call that matters comes up for permission.

opencode also installs a package of its own at every start unless npm is told to stay offline."""


class Job(Record):
    """What the program needs to know. Secrets are in its environment, not here."""

    command: list[str]
    name: str
    """The command line as it was given, under which a price table may know what it costs."""
    prompt: str
    session: str
    """To go on with; empty: a new one."""
    costs: Path
    """Folder that remembers what a session had cost at the end of an attempt."""
    worktree: Path
    url: str
    environment: dict[str, str] = {}
    """For the agent alone."""


class Acp:
    name = "acp"
    keys: tuple[str, ...] = (
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL",
        "CURSOR_API_KEY",
        "GEMINI_API_KEY",
        "MOONSHOT_API_KEY",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "OPENROUTER_API_KEY",
    )

    def start(self, brief: RoleBrief) -> ProgramAttempt:
        command = _command(brief.model)
        if find_spec("acp") is None:
            raise InvalidInput(f"acp needs its library: {INSTALL}")
        folder = brief.home / "acp"
        folder.mkdir(parents=True, exist_ok=True)
        job = Job(
            command=command,
            name=brief.model,
            prompt=brief.prompt or brief.charter.read_text(encoding="utf-8"),
            session=brief.session,
            costs=folder,
            worktree=brief.worktree,
            url=brief.url,
            environment=RESTRAINTS.get(Path(command[0]).name, {}),
        )
        file = folder / "job.json"
        file.write_text(job.model_dump_json(indent=2), encoding="utf-8")
        # Without a key the agent can only be logged in as the person, and where that is kept hangs on HOME.
        home = {} if brief.keys else {"HOME": str(Path.home())}
        return ProgramAttempt("mcp_server.agents.acp_program", file, home | brief.keys)

    async def check(self, keys: dict[str, str]) -> AgentCheck:
        try:
            found = f"{DISTRIBUTION} {version(DISTRIBUTION)}"
        except PackageNotFoundError:
            return AgentCheck(program="", remedy=INSTALL)
        return AgentCheck(program=sys.executable, version=found, login=", ".join(sorted(keys)) or "the agent's own")


def _command(text: str) -> list[str]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InvalidInput(f"acp: the command line {text!r} cannot be read: {error}") from error
    if not words:
        raise InvalidInput("acp needs the command line of an agent: acp:opencode acp, or acp:/path/to/agent --flag")
    program = shutil.which(words[0])
    if program is None:
        raise InvalidInput(f"acp: there is no program {words[0]!r} on the PATH: install it or give its whole path")
    return [program, *words[1:]]


AGENT = Acp()
