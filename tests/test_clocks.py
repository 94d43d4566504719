"""No limit moves with the date: whoever sets the clock, by hand or by network, ends no evaluation and prolongs none."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OF_THE_DATE = {
    "time.time",
    "time.time_ns",
    "time.localtime",
    "time.gmtime",
    "time.ctime",
    "datetime.now",
    "datetime.utcnow",
    "datetime.today",
    "date.today",
    "datetime.datetime.now",
}
STAMPS = {
    "mcp_server/ledger_store.py",
    "mcp_server/role_work.py",
    "mcp_server/agents/codex_attempt.py",
    "mcp_server/agents/opencode_attempt.py",
    "mcp_server/agents/open_model_endings.py",
}
"""Write down when something happened, or wait for the hour at which a vendor says that a quota ends.

The time limits of a role and of a run count seconds of their own.
"""


def _calls(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    yield from (ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call))


def _clocks_imported(path: Path) -> Iterator[str]:
    """`from time import time` would hide the call."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "time":
            yield from (f"time.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("package", ["toolkits", "mcp_server"])
def test_no_limit_is_counted_by_a_clock_that_somebody_can_set(package: str) -> None:
    for path in sorted((ROOT / package).rglob("*.py")):
        if str(path.relative_to(ROOT)) not in STAMPS:
            asked = OF_THE_DATE & {*_calls(path), *_clocks_imported(path)}
            assert not asked, f"{path} asks for the date by {asked}: use time.monotonic"
