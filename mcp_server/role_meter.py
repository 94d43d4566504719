"""What one attempt at a role uses up, against what it was given. Decides; ending the role is another's work."""

import time
from dataclasses import dataclass, field

from mcp_server.agents.agent import AgentEvent
from mcp_server.ledger import Ledger, RoleRow
from mcp_server.schema import RoleState

SPEND_EVERY_S = 5.0
LAST_WORDS_S = 60.0
"""For a role whose evaluations are used up: it may still think, write and end by itself."""


@dataclass
class Meter:
    """Hears what the role says, keeps its spend in the ledger, and knows when a cap is reached."""

    ledger: Ledger
    row: RoleRow
    started: float = field(default_factory=time.monotonic)
    written: float = 0.0
    """Seconds already in the ledger."""
    used_up_at: float | None = None
    said: str = ""

    def hear(self, event: AgentEvent) -> None:
        self.said = event.text or self.said
        if event.usd or event.tokens:
            self.ledger.spend(self.row.run, self.row.id, event.usd, event.tokens, 0.0)

    def exceeded(self) -> RoleState | None:
        """Why the role has to end now."""
        seconds = time.monotonic() - self.started
        if seconds - self.written >= SPEND_EVERY_S:
            self.write_seconds()
        if self.row.minutes and seconds >= self.row.minutes * 60:
            return "time"
        if self.row.usd and self.ledger.spent(self.row.run, self.row.id).usd >= self.row.usd:
            return "budget"
        return "budget" if self._evaluations_used_up() else None

    def write_seconds(self) -> None:
        seconds = time.monotonic() - self.started
        self.ledger.spend(self.row.run, self.row.id, 0.0, 0, seconds - self.written)
        self.written = seconds

    def _evaluations_used_up(self) -> bool:
        cap = self.row.evaluations
        if not cap or self.ledger.count_evaluations(self.row.run, self.row.id) < cap:
            return False
        self.used_up_at = self.used_up_at or time.monotonic()
        return time.monotonic() - self.used_up_at >= LAST_WORDS_S
