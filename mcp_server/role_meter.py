"""What a role uses up, against everything that bounds it. Decides; ending the role is another's work."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from mcp_server.agents.agent import AgentEvent, Ended, Usage
from mcp_server.budgets import Account
from mcp_server.ledger import Ledger, RoleRow
from mcp_server.prices import Prices
from mcp_server.stalls import Clocks

SPEND_EVERY_S = 5.0
LAST_WORDS_S = 60.0
"""For a role whose evaluations are used up: it may still think, write and end by itself."""


@dataclass
class Meter:
    """The watch over one attempt: hears what the agent says, books what it spends, and knows when it has to end."""

    ledger: Ledger
    row: RoleRow
    number: int
    """Of the attempt."""
    prices: Prices
    clocks: Clocks
    began: float = field(default_factory=time.monotonic)
    """When the role did, with its first attempt."""
    started: float = field(default_factory=time.monotonic)
    written: float = 0.0
    """Seconds already in the ledger."""
    usd: float = 0.0
    """Booked for this attempt."""
    usage: Usage = field(default_factory=Usage)
    unpriced: dict[str, int] = field(default_factory=dict[str, int])
    """Model -> tokens that no price is known for, as long as the agent does not tell dollars itself."""
    used_up_at: float | None = None
    said: str = ""

    def output(self) -> None:
        self.clocks.heard(time.monotonic())

    def hear(self, event: AgentEvent) -> None:
        self.output()
        if event.kind == "session":
            self.ledger.set_session(self.row.id, self.number, event.text)
        elif event.kind == "spend":
            self._book(event)
        else:
            self.said = event.text or self.said

    def verdict(self) -> Ended | None:
        """Why the role has to end now."""
        now = time.monotonic()
        if now - self.started - self.written >= SPEND_EVERY_S:
            self.write_seconds()
        return self.overdrawn() or self._stalled(now)

    def overdrawn(self) -> Ended | None:
        """Why it may use no more, by the ledger: other servers book on the same budgets."""
        if self.ledger.role(self.row.id).stop:
            return Ended(ending="stopped", note="somebody asked for its end")
        accounts = self.ledger.accounts(self.row, (time.monotonic() - self.began) / 60)
        for account in accounts:
            if ended := account.overdrawn():
                return ended
        if self.unpriced and _only_usd(accounts):
            return self._unpriced()
        used_up = [account for account in accounts if account.evaluations_used_up()]
        return self._last_words(f"{used_up[0].whose} {used_up[0].caps.evaluations}") if used_up else None

    def write_seconds(self) -> None:
        seconds = time.monotonic() - self.started
        self.ledger.spend(self.row.run, self.row.id, 0.0, 0, seconds - self.written)
        self.written = seconds

    def _book(self, event: AgentEvent) -> None:
        usd = 0.0
        if event.usage:
            self.usage = _sum(self.usage, event.usage)
            cost = self.prices.usd(event.usage)
            if cost is None and event.usage.tokens:
                model = event.usage.model
                self.unpriced[model] = self.unpriced.get(model, 0) + event.usage.tokens
            usd = cost or 0.0
        if event.usd_total is not None:
            usd = event.usd_total - self.usd
            self.unpriced.clear()
        self.usd += usd
        tokens = event.usage.tokens if event.usage else 0
        if usd or tokens:
            self.ledger.spend(self.row.run, self.row.id, usd, tokens, 0.0)

    def _unpriced(self) -> Ended:
        model = next(iter(self.unpriced))
        note = f"there is no price for the model {model!r}, so its cap in USD cannot be held: "
        return Ended(ending="budget", note=note + self.prices.remedy(model))

    def _last_words(self, whose: str) -> Ended | None:
        self.used_up_at = self.used_up_at or time.monotonic()
        if time.monotonic() - self.used_up_at < LAST_WORDS_S:
            return None
        return Ended(ending="budget", note=f"{whose} evaluations are used, and {LAST_WORDS_S:g} s for last words")

    def _stalled(self, now: float) -> Ended | None:
        self.clocks.credited(now, self.ledger.credits(self.row.run, self.row.id))
        stalled = self.clocks.verdict(now)
        if stalled and self.ledger.is_waiting(self.row):
            self.clocks.excused(now)
            return None
        return stalled


def _only_usd(accounts: Sequence[Account]) -> bool:
    return any(account.caps.usd for account in accounts) and not any(account.caps.tokens for account in accounts)


def _sum(a: Usage, b: Usage) -> Usage:
    return Usage(
        model=b.model or a.model,
        input_tokens=a.input_tokens + b.input_tokens,
        cache_read_tokens=a.cache_read_tokens + b.cache_read_tokens,
        cache_write_tokens=a.cache_write_tokens + b.cache_write_tokens,
        output_tokens=a.output_tokens + b.output_tokens,
    )
