"""What the lab has on record."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from mcp_server.ledger import Ledger
from mcp_server.workspace import Workspace


def jobs(root: Path) -> list[str]:
    """The ids of all jobs so far; none where there is no ledger yet."""
    return [job for job, _ in _rows(root)]


def recorded(root: Path) -> list[str]:
    """The statuses of the evaluations that jobs ended with, as the ledger keeps them."""
    ledger = Ledger(Workspace(root).database)
    answers = [json.loads(answer) for _, answer in _rows(root) if answer]
    return [ledger.evaluation(answer["evaluation"]).result.status for answer in answers]


def _rows(root: Path) -> list[tuple[str, str | None]]:
    file = root / "lab.db"
    if not file.exists():
        return []
    with closing(sqlite3.connect(file)) as database:
        try:
            return database.execute("SELECT id, answer FROM jobs").fetchall()
        except sqlite3.OperationalError:  # it is being made
            return []
