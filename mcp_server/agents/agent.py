"""What an agent adapter is, and how one is found by name. Knows no adapter and starts no process."""

from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Literal, Protocol, cast

from mcp_server.workspace import worktree_of
from toolkits.core.errors import NotInWorkspace
from toolkits.core.schema import Record

ENTRY_POINT_GROUP = "kernel_lab.agents"
_FOLDER = Path(__file__).parent


class RoleBrief(Record):
    """All that an adapter needs to start one role."""

    role: str
    """Id of the role."""
    run: str
    task: str
    folder: Path
    """Holds charter.md; the role works in its `worktree`."""
    charter: Path
    url: str | None
    """Address of the lab's MCP server; None: the role starts its own over stdio on `root`."""
    root: Path
    """The workspace root."""
    token: str
    """Names the role to the server."""

    @property
    def worktree(self) -> Path:
        return worktree_of(self.folder)


class AgentEvent(Record):
    """What one line of an agent's output means to the lab."""

    kind: Literal["progress", "spend", "result"]
    text: str = ""
    outcome: str = ""
    """Of a result: a role state such as `done`, `budget` or `stopped`; anything else counts as a crash."""
    usd: float = 0.0
    """Spent since the last event, in USD."""
    tokens: int = 0
    """Used since the last event."""


class Agent(Protocol):
    """How one kind of agent is started and understood. One file each, ending in `AGENT = ...`."""

    name: str

    def command(self, brief: RoleBrief) -> list[str]:
        """The argument list of the role's process; raises InvalidInput for a charter it cannot work with."""
        ...

    def environment(self, brief: RoleBrief) -> dict[str, str]:
        """Variables beyond those that every role gets."""
        ...

    def event(self, line: str) -> AgentEvent | None:
        """The meaning of one line of its standard output; None for what matters only to the transcript."""
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
