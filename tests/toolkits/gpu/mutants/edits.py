"""How a task's mutants are written in one toolkit: small edits of a shipped solution, which must apply."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mcp_server.folders import read_solution
from toolkits.core.schema import Solution

KERNELS = Path(__file__).parents[4] / "kernels"
Edits = Mapping[str, str]
"""Old text -> new text, one after the other; each must be there, and its first place is replaced."""


@dataclass(frozen=True)
class Written:
    """Mutants of a task as edits of one shipped solution."""

    task: str
    solution: str
    mutants: Mapping[str, Edits]
    cannot: Mapping[str, str] = field(default_factory=dict[str, str])
    """Mutant -> why it has no place in this solution."""
    dies: frozenset[str] = frozenset()
    """Those that are stopped where they leave their memory."""

    def shipped(self) -> Solution:
        return read_solution(KERNELS / self.task / "solutions" / self.solution, self.task)


def edited(text: str, edits: Edits) -> str:
    """The text of one mutant."""
    for old, new in edits.items():
        assert old in text, f"this edit no longer applies: {old!r}"
        text = text.replace(old, new, 1)
    return text
