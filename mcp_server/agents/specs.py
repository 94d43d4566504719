"""How callers name who plays a role: `name` or `name:model`, several separated by commas in order of preference."""

from toolkits.core.errors import InvalidInput
from toolkits.core.schema import Record


class AgentSpec(Record):
    """One agent, and its model where it shall not be the agent's own default."""

    name: str
    model: str = ""

    def __str__(self) -> str:
        return f"{self.name}:{self.model}" if self.model else self.name


def read_specs(text: str) -> list[AgentSpec]:
    """The agents that a spec names, the preferred one first."""
    parts = [part.strip() for part in text.split(",")]
    pairs = [part.partition(":") for part in parts]
    if not all(name for name, _, _ in pairs):
        raise InvalidInput(f"agent {text!r}: give `name` or `name:model`, several separated by commas")
    return [AgentSpec(name=name.strip(), model=model.strip()) for name, _, model in pairs]
