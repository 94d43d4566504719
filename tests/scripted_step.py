"""What a scripted model says, turn by turn. Knows no wire format."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]
"""A body as it crosses the wire: its form is what the clients under test decide."""


@dataclass(frozen=True)
class Call:
    """A tool call; the tool is named without the prefix that a client gives it."""

    tool: str
    arguments: Json = field(default_factory=dict[str, Any])
    """A text such as "<job>" stands for the last `job` that a tool's result named in the conversation."""

    def filled(self, body: Json) -> Json:
        """The arguments as a model would give them that has read the conversation."""
        return {name: _filled(value, body) for name, value in self.arguments.items()}


def _filled(value: Any, body: Json) -> Any:
    if not (isinstance(value, str) and re.fullmatch("<[a-z_]+>", value)):
        return value
    said = json.dumps([body.get("messages"), body.get("input")]).replace("\\", "")
    found = re.findall(rf'\b{value[1:-1]}"?:? ?"?([a-z][0-9a-f]{{6,}})', said)
    return found[-1] if found else value


@dataclass(frozen=True)
class Usage4:
    """Tokens of one reply; the four kinds do not overlap."""

    input: int = 1000
    cache_read: int = 200
    cache_write: int = 100
    output: int = 50


@dataclass(frozen=True)
class Step:
    """One turn of the model. An `http` status other than 0 is sent with the vendor's own body for it."""

    text: str = ""
    calls: Sequence[Call] = ()
    usage: Usage4 = Usage4()
    http: int = 0
    body: Json | None = None
    """Instead of the vendor's own error body."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    refuse: bool = False
    """The reply ends as a refusal, in the words of `text` if there are any."""
    hang: bool = False
    """The request is taken and never answered."""
    stream_cut: bool = False
    """The connection ends halfway through the reply."""


Script = Sequence[Step] | Mapping[str, Sequence[Step]]
"""Steps, or steps by the beginning of a model's name, for several vendors on one server."""

ASIDE = Step(text="Aside.", usage=Usage4(0, 0, 0, 0))
"""What is said where no tools are offered: clients ask for titles and the like, which is not the role's work."""


def step_of(script: Script, model: str, turn: int, has_tools: bool) -> Step:
    """The step of that turn; past the end the last one repeats. An error or a silence holds for asides too."""
    steps = _steps(script, model)
    step = steps[min(turn, len(steps) - 1)] if steps else ASIDE
    return step if has_tools or step.http or step.hang else ASIDE


def _steps(script: Script, model: str) -> Sequence[Step]:
    if not isinstance(script, Mapping):
        return script
    return next((steps for name, steps in script.items() if model.startswith(name)), ())


def tool_named(wanted: str, offered: Iterable[str], body: Json) -> str:
    """The client's own name of a tool; one that it only mentions in text (to be loaded on demand) is found there."""
    for name in offered:
        if name == wanted or name.endswith((f"__{wanted}", f"_{wanted}", f".{wanted}")):
            return name
    mentioned = re.search(rf"mcp__[A-Za-z0-9_-]+?__{re.escape(wanted)}(?![A-Za-z0-9_])", json.dumps(body))
    return mentioned[0] if mentioned else wanted
