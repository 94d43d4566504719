"""What was measured, spent, started and decided: one SQLite file that survives every process that writes it.

Only the `ledger*` modules hold SQL: `ledger_schema` the tables and row records, `ledger_store` the connection,
`ledger_history`, `ledger_jobs`, `ledger_roles` and `ledger_spend` one noun each, `ledger_search` the text index.
"""

import json
import secrets
import sqlite3

from mcp_server.ledger_history import HistoryStore, append_row
from mcp_server.ledger_jobs import ORPHANED, JobStore, end_job
from mcp_server.ledger_roles import RoleStore
from mcp_server.ledger_schema import AttemptRow, EvaluationRow, JobRow, RoleRow, RunRow, Spent
from mcp_server.ledger_search import full_text_search
from mcp_server.ledger_store import digest, now, owner_alive, owner_of, packed, this_process
from toolkits.core.errors import NotInWorkspace
from toolkits.core.schema import BenchmarkResult, Json, Solution

__all__ = [
    "ORPHANED",
    "AttemptRow",
    "EvaluationRow",
    "JobRow",
    "Ledger",
    "RoleRow",
    "RunRow",
    "Spent",
    "full_text_search",
    "owner_alive",
    "owner_of",
    "this_process",
]


class Ledger(HistoryStore, JobStore, RoleStore):
    """Runs, history, jobs, roles and evaluations; `Ledger(path)` opens nothing until it is used."""

    def record_evaluation(
        self, job: str, run: str, role: str, solution: Solution, result: BenchmarkResult, answer: Json, event: Json
    ) -> str:
        """Write evaluation, history row and the job's answer together, once a job; gives the evaluation's id.

        `answer` and `event` get the id as `evaluation`; the event also gets the digest of the stored result.
        """
        with self._recording() as db:
            known = db.execute("SELECT id FROM evaluations WHERE job = ?", (job,)).fetchone()
            if known:
                return known["id"]
            id, text = f"e{secrets.token_hex(6)}", packed(result.model_dump(mode="json"))
            row = (id, job, run, role, solution.task, solution.id, now(), text)
            db.execute("INSERT INTO evaluations VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
            append_row(db, run, "evaluation", event | {"evaluation": id, "record": digest(text)}, role)
            end_job(db, job, "done", answer | {"evaluation": id}, "")
            return id

    def evaluation(self, id: str) -> EvaluationRow:
        with self._reading() as db:
            row = db.execute("SELECT * FROM evaluations WHERE id = ?", (id,)).fetchone()
        if row is None:
            raise NotInWorkspace(f"no evaluation {id!r} in this workspace: read_history names those of a run")
        return _evaluation_row(row)

    def evaluations(
        self, run: str | None = None, role: str | None = None, task: str | None = None, limit: int = 1000
    ) -> list[EvaluationRow]:
        """The last `limit` evaluations that fit, oldest first; None fits all."""
        query = """SELECT * FROM evaluations WHERE run = coalesce(?, run) AND role = coalesce(?, role)
            AND task = coalesce(?, task) ORDER BY rowid DESC LIMIT ?"""
        with self._reading() as db:
            return [_evaluation_row(row) for row in db.execute(query, (run, role, task, limit))][::-1]


def _evaluation_row(row: sqlite3.Row) -> EvaluationRow:
    return EvaluationRow.model_validate(dict(row) | {"result": json.loads(row["result"])})
