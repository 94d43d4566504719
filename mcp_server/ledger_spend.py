"""What runs and roles have used: dollars, tokens, seconds, evaluations; of a role always with its helpers."""

import json
import sqlite3
from datetime import datetime, timedelta

from mcp_server.budgets import Account, RunCaps, Used, covered_minutes
from mcp_server.ledger_schema import RoleRow, Spent
from mcp_server.ledger_store import Store, now, owner_alive
from toolkits.core.errors import BudgetExhausted

_MINE = "run = :run AND (:role IS NULL OR role = :role OR role IN (SELECT id FROM roles WHERE parent = :role))"
_OWN_CAPS = "usd, tokens, minutes, evaluations"


class SpendStore(Store):
    """The bookkeeping of every budget."""

    def spend(self, run: str, role: str, usd: float, tokens: int, seconds: float) -> None:
        with self._recording() as db:
            db.execute("INSERT INTO spend VALUES (?, ?, ?, ?, ?, ?)", (run, role, now(), usd, tokens, seconds))

    def spent(self, run: str, role: str | None = None) -> Spent:
        """The sum for a run, or for one of its roles with its helpers."""
        query = f"""SELECT coalesce(sum(usd), 0) AS usd, coalesce(sum(tokens), 0) AS tokens,
            coalesce(sum(seconds), 0) AS seconds FROM spend WHERE {_MINE}"""
        with self._reading() as db:
            return Spent(**dict(db.execute(query, {"run": run, "role": role}).fetchone()))

    def count_evaluations(self, run: str, role: str | None = None) -> int:
        """Recorded ones of a run, or of one of its roles with its helpers."""
        with self._reading() as db:
            return _count(db, run, role)

    def accounts(self, row: RoleRow, minutes: float = 0.0) -> list[Account]:
        """Every budget that the role draws on: its own, that of the role it helps, its run's without the reserve.

        `minutes` are those since the role began, by whoever watches it: more than it booked if it had to pause.
        """
        with self._reading() as db:
            used = _used(db, row.run, row.id)
            used = used.model_copy(update={"minutes": max(minutes, used.minutes)})
            own = [Account(whose="its", caps=row.caps, used=used)]
            if row.parent:
                found = dict(db.execute(f"SELECT {_OWN_CAPS} FROM roles WHERE id = ?", (row.parent,)).fetchone())
                used = _used(db, row.run, row.parent)
                own.append(Account.model_validate({"whose": "its parent's", "caps": found, "used": used}))
            caps = _run_caps(db, row.run).for_roles()
            covered = covered_minutes(_work(db, row.run)) if caps.minutes else 0.0
            used = _used(db, row.run, None).model_copy(update={"minutes": covered})
            return [*own, Account(whose="its run's", caps=caps, used=used)]

    def run_caps(self, run: str) -> RunCaps:
        """What the run's config allows, the reserve included."""
        with self._reading() as db:
            return _run_caps(db, run)

    def grant_evaluation(self, db: sqlite3.Connection, run: str, role: str) -> None:
        """Within the caller's transaction; raises BudgetExhausted where a cap is reached, with what is in flight."""
        row = db.execute("SELECT parent, evaluations FROM roles WHERE id = ?", (role,)).fetchone()
        if row is None:
            return
        caps = [(role, int(row["evaluations"]), "this role")]
        if row["parent"]:
            parent = db.execute("SELECT evaluations FROM roles WHERE id = ?", (row["parent"],)).fetchone()
            caps.append((row["parent"], int(parent[0]), "the role that you help"))
        caps.append(("", _run_caps(db, run).for_roles().evaluations, "this run, less its reserve,"))
        for whose, cap, name in caps:
            if cap and _count(db, run, whose or None) + _in_flight(db, run, whose or None) >= cap:
                raise BudgetExhausted(
                    f"{name} has used all {cap} evaluations it was given: "
                    "end your turn with what you have learned; results so far are in read_history"
                )


def _count(db: sqlite3.Connection, run: str, role: str | None) -> int:
    query = f"SELECT count(*) FROM evaluations WHERE {_MINE}"
    return int(db.execute(query, {"run": run, "role": role}).fetchone()[0])


def _in_flight(db: sqlite3.Connection, run: str, role: str | None) -> int:
    query = f"SELECT owner FROM jobs WHERE {_MINE} AND kind = 'benchmark' AND state IN ('queued', 'running')"
    return sum(owner_alive(row["owner"]) for row in db.execute(query, {"run": run, "role": role}))


def _used(db: sqlite3.Connection, run: str, role: str | None) -> Used:
    """With its helpers, but for the minutes, which are the role's own and were booked by a clock that nobody sets."""
    query = f"""SELECT coalesce(sum(usd), 0) AS usd, coalesce(sum(tokens), 0) AS tokens,
        coalesce(sum(seconds) FILTER (WHERE role = :role), 0) / 60 AS minutes FROM spend WHERE {_MINE}"""
    spent = db.execute(query, {"run": run, "role": role}).fetchone()
    return Used(**dict(spent), evaluations=_count(db, run, role))


def _run_caps(db: sqlite3.Connection, run: str) -> RunCaps:
    row = db.execute("SELECT config FROM runs WHERE run = ?", (run,)).fetchone()
    return RunCaps.model_validate(json.loads(row["config"]) if row else {})


def _work(db: sqlite3.Connection, run: str) -> list[tuple[datetime, datetime]]:
    """When roles of the run were at work, by what they booked: a pause of the run, or its death, is not among it."""
    rows = db.execute("SELECT at, seconds FROM spend WHERE run = ? AND seconds > 0", (run,))
    times = [(datetime.fromisoformat(row["at"]), float(row["seconds"])) for row in rows]
    return [(at - timedelta(seconds=seconds), at) for at, seconds in times]
