"""What an agent adapter is, and how one is found by name. Knows no adapter and starts no process."""

from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Literal, Protocol, cast

from mcp_server.schema.roles import Ending
from mcp_server.workspace import worktree_of
from toolkits.core.errors import NotInWorkspace
from toolkits.core.schema import Record

ENTRY_POINT_GROUP = "kernel_lab.agents"
_FOLDER = Path(__file__).parent


class RoleBrief(Record):
    """All that an adapter needs to start one attempt at a role."""

    role: str
    """Id of the role."""
    run: str
    task: str
    folder: Path
    """Holds charter.md; the role works in its `worktree`."""
    charter: Path
    url: str
    """Address of the lab's MCP server."""
    root: Path
    """The workspace root."""
    token: str
    """Names the role to the server; also in the environment as KERNEL_LAB_TOKEN."""
    prompt: str = ""
    """What a model is told: the charter in its frame, or after an interruption that it goes on."""
    model: str = ""
    """Empty: the agent's own default."""
    session: str = ""
    """The agent's own session to resume; empty: a new one."""
    usd_left: float = 0.0
    """What the role may still spend, for agents with a limit of their own; 0: no cap."""
    keys: dict[str, str] = {}
    """Of the agent's `keys`, those that this server was given."""

    @property
    def worktree(self) -> Path:
        return worktree_of(self.folder)

    @property
    def home(self) -> Path:
        """A private HOME, kept between the attempts at a role."""
        return self.folder / "home"


class Usage(Record):
    """Tokens of one or more replies of a model. The four kinds add up and do not overlap."""

    model: str = ""
    """As a price table knows it; empty: unknown."""
    input_tokens: int = 0
    """Read anew."""
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    """With the tokens of reasoning."""

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens + self.output_tokens


class AgentEvent(Record):
    """What one line of an agent's output means to the lab."""

    kind: Literal["progress", "spend", "session"]
    text: str = ""
    """Of progress: what it says or does, in a line; of a session: its id."""
    usage: Usage | None = None
    """Of a spend: used since the last event. Its cost comes from the price table."""
    usd_total: float | None = None
    """Of a spend: what this attempt has cost by the agent's own account, which replaces all estimates so far."""


class Exit(Record):
    """How the process of an attempt ended."""

    returncode: int
    """Negative: ended by that signal."""
    errors: str
    """Its standard error, head and tail."""

    @property
    def how(self) -> str:
        return f"exit status {self.returncode}" if self.returncode >= 0 else f"signal {-self.returncode}"


class Ended(Record):
    """What an attempt came to, by the agent's own words and its exit together."""

    ending: Ending
    note: str
    """Why, in a sentence or two."""
    evidence: list[str] = []
    """What was seen: lines of output, exit status; bounded."""
    quota_until: str = ""
    """Of a quota: when it ends, ISO 8601 in UTC; empty: not said."""


class AgentCheck(Record):
    """Whether an agent could be started here. Nothing in it is a secret."""

    program: str
    """Path of what would be started; empty: not found."""
    version: str = ""
    login: str = ""
    """Whether it looks logged in, and by what, never the thing itself; empty: it needs no login."""
    remedy: str = ""
    """The one command that would change what is missing; empty: ready."""


class Attempt(Protocol):
    """One process of a role, from its command line to the meaning of its end."""

    command: list[str]
    environment: dict[str, str]
    """Beyond what every role gets (PATH, HOME, LANG, KERNEL_LAB_*), and over it."""

    def hear(self, line: str) -> list[AgentEvent]:
        """The meaning of one line of standard output; empty for what matters only to the transcript."""
        ...

    def poll(self) -> list[AgentEvent]:
        """What the agent has told elsewhere since the last call, such as in its session log. Called twice a second."""
        ...

    def ended(self, exit: Exit) -> Ended:
        """Called once, after the process is gone and all its lines were heard; no exit status is believed alone."""
        ...


class Agent(Protocol):
    """How one kind of agent is started and understood. One file each, ending in `AGENT = ...`."""

    name: str
    keys: tuple[str, ...]
    """Environment variables of the server that it may be given: keys and addresses of its model."""

    def start(self, brief: RoleBrief) -> Attempt:
        """Prepare an attempt (files in `brief.home`); raises InvalidInput for what it cannot work with."""
        ...

    async def check(self, keys: dict[str, str]) -> AgentCheck:
        """Look at the installation; `keys` are those of its variables that are set. Asks no vendor anything."""
        ...


def agents() -> list[str]:
    """Names of the agents that exist: shipped files and installed entry points. Loads none of them."""
    return sorted({*_shipped(), *entry_points(group=ENTRY_POINT_GROUP).names})


def get_agent(name: str) -> Agent:
    if name in _shipped():
        return cast(Agent, import_module(f"mcp_server.agents.{name}").AGENT)
    for entry_point in entry_points(group=ENTRY_POINT_GROUP, name=name):
        return cast(Agent, entry_point.load())
    raise NotInWorkspace(f"there is no agent {name!r}; there are: {', '.join(agents())}")


def _shipped() -> list[str]:
    """Files with an AGENT, told by their text: importing all of them would load every agent's libraries."""
    return [file.stem for file in _FOLDER.glob("*.py") if "\nAGENT" in file.read_text(encoding="utf-8")]
