"""Whether a role may be started at all: its caps can be held, and something is left for it. Starts nothing."""

from collections.abc import Sequence

from mcp_server.agents.specs import AgentSpec
from mcp_server.budgets import Caps
from mcp_server.ledger import Ledger, RoleRow
from mcp_server.prices import Prices
from toolkits.core.errors import BudgetExhausted, InvalidInput


def check_affordable(
    ledger: Ledger, prices: Prices, run: str, caps: Caps, agents: Sequence[AgentSpec], parent: RoleRow | None
) -> None:
    """Raise for a cap in USD that cannot be held, and for a helper of a role that has nothing left."""
    bounds = [caps, ledger.run_caps(run).for_roles(), *([parent.caps] if parent else [])]
    if any(one.usd for one in bounds) and not any(one.tokens for one in bounds):
        _check_prices(prices, agents)
    for account in ledger.accounts(parent) if parent else []:
        if over := account.overdrawn():
            raise BudgetExhausted(f"no budget is left for a helper: {over.note}")


def _check_prices(prices: Prices, agents: Sequence[AgentSpec]) -> None:
    """An agent's own default model shows itself only when it replies."""
    for model in [agent.model for agent in agents if agent.model]:
        if prices.price(model) is None:
            raise InvalidInput(
                f"there is no price for the model {model!r}, so a cap in USD cannot be held: {prices.remedy(model)}"
            )
