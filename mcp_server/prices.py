"""What tokens cost: a dated table that is data, with the workspace's own laid over it. Knows no agent and no budget."""

import re
from pathlib import Path

from mcp_server.agents.agent import Usage
from mcp_server.reading import record, text_of, yaml_mapping
from toolkits.core.errors import InvalidInput
from toolkits.core.schema import Record

FILE = "prices.yaml"
MILLION = 1_000_000
_DATED = re.compile(r"(-latest|[-@]20\d{6}|-20\d\d-\d\d-\d\d)$")
"""What a vendor appends to the name of a model for one release of it."""


class Price(Record):
    """USD per million tokens."""

    input: float
    cache_read: float
    cache_write: float
    output: float

    def of(self, usage: Usage) -> float:
        """USD for these tokens."""
        kinds = (
            (usage.input_tokens, self.input),
            (usage.cache_read_tokens, self.cache_read),
            (usage.cache_write_tokens, self.cache_write),
            (usage.output_tokens, self.output),
        )
        return sum(tokens * price for tokens, price in kinds) / MILLION


class Table(Record):
    """A price file."""

    as_of: str = ""
    """Day on which the prices were read."""
    models: dict[str, Price | str] = {}
    """A text names another entry."""


class Prices:
    """The shipped table under that of a workspace."""

    def __init__(self, root: Path) -> None:
        self.own = root / FILE
        tables = [_table(Path(__file__).with_name(FILE))] + ([_table(self.own)] if self.own.is_file() else [])
        self._models = {name.lower(): price for table in tables for name, price in table.models.items()}

    def price(self, model: str) -> Price | None:
        """Of a model by its name, with or without its vendor and its date; None: unknown."""
        name = model.lower().rpartition("/")[2]
        found = self._models.get(model.lower()) or self._models.get(name) or self._models.get(_DATED.sub("", name))
        return self._models_of(found) if isinstance(found, str) else found

    def usd(self, usage: Usage) -> float | None:
        """None: there is no price for the model."""
        price = self.price(usage.model)
        return price.of(usage) if price else None

    def remedy(self, model: str) -> str:
        """How a price, or a cap that needs none, is given."""
        entry = f"{model or 'MODEL'}: {{input: 1.0, cache_read: 0.1, cache_write: 1.0, output: 5.0}}"
        return f"put it under `models:` in {self.own} (USD per million tokens, such as `{entry}`), or give a token cap"

    def _models_of(self, name: str) -> Price | None:
        found = self._models.get(name.lower())
        return found if isinstance(found, Price) else None


def _table(file: Path) -> Table:
    table = record(Table, yaml_mapping(text_of(file), str(file)), str(file))
    for name, price in table.models.items():
        if isinstance(price, Price) and min(price.model_dump().values()) < 0:
            raise InvalidInput(f"{file}: {name} has a price below 0")
    return table
