"""Jobs: work that outlives a call, joined by content, given up when the process that owned it has ended."""

import json
import secrets
import sqlite3

from mcp_server.ledger_schema import JobRow
from mcp_server.ledger_spend import SpendStore
from mcp_server.ledger_store import now, owner_alive, packed, plain
from mcp_server.schema import JobKind, JobState
from toolkits.core.errors import NotInWorkspace
from toolkits.core.schema import Json

ORPHANED = "the server that ran it ended before it was done: ask again"
_OPEN = "state IN ('queued', 'running')"


class JobStore(SpendStore):
    """Who works on what, and what came of it."""

    def open_job(self, kind: JobKind, key: str, run: str, role: str, request: Json, owner: str) -> tuple[JobRow, bool]:
        """A new queued job, or (True) the one that a living process already works on under the same key.

        A role's benchmarks are bounded by every cap on evaluations that it has; joining costs none.
        """
        with self._writing() as db:
            for row in db.execute(f"SELECT * FROM jobs WHERE key = ? AND cancel = 0 AND {_OPEN}", (key,)):
                if owner_alive(row["owner"]):
                    db.execute("UPDATE jobs SET shared = 1 WHERE id = ? AND role <> ?", (row["id"], role))
                    db.execute("INSERT OR IGNORE INTO joins VALUES (?, ?)", (row["id"], role))
                    return _job_row(_found(db, row["id"])), True
            if kind == "benchmark" and role:
                self.grant_evaluation(db, run, role)
            id, at = f"j{secrets.token_hex(6)}", now()
            db.execute(
                "INSERT INTO jobs VALUES (?, ?, ?, ?, ?, 'queued', ?, ?, ?, NULL, '', 0, ?, 0)",
                (id, kind, key, run, role, owner, at, packed(request), at),
            )
            return _job_row(_found(db, id)), False

    def job(self, id: str) -> JobRow:
        """The job as it stands; an open job of a dead owner reads as failed."""
        with self._reading() as db:
            return _job_row(_found(db, id))

    def start_job(self, id: str) -> None:
        with self._writing() as db:
            _found(db, id)
            db.execute(
                "UPDATE jobs SET state = 'running', heartbeat = ? WHERE id = ? AND state = 'queued'", (now(), id)
            )

    def heartbeat(self, id: str) -> None:
        with self._writing() as db:
            db.execute(f"UPDATE jobs SET heartbeat = ? WHERE id = ? AND {_OPEN}", (now(), id))

    def finish_job(self, id: str, state: JobState, answer: Json | None, error: str = "") -> None:
        """End the job; one that has ended already keeps its first end."""
        with self._writing() as db:
            _found(db, id)
            end_job(db, id, state, answer, error)

    def request_cancel(self, id: str) -> None:
        """Ask the owner to stop; the state changes when it has."""
        with self._writing() as db:
            _found(db, id)
            db.execute("UPDATE jobs SET cancel = 1 WHERE id = ?", (id,))

    def cancel_jobs(self, role: str) -> None:
        """Ask for the end of all that the role alone has running."""
        with self._writing() as db:
            db.execute(f"UPDATE jobs SET cancel = 1 WHERE role = ? AND shared = 0 AND {_OPEN}", (role,))

    def cancel_requested(self, id: str) -> bool:
        with self._reading() as db:
            return bool(_found(db, id)["cancel"])


def end_job(db: sqlite3.Connection, id: str, state: JobState, answer: Json | None, error: str) -> None:
    """End an open job within the caller's transaction."""
    text = packed(answer) if answer is not None else None
    db.execute(
        f"UPDATE jobs SET state = ?, answer = ?, error = ?, heartbeat = ? WHERE id = ? AND {_OPEN}",
        (state, text, plain(error), now(), id),
    )


def _found(db: sqlite3.Connection, id: str) -> sqlite3.Row:
    row = db.execute("SELECT * FROM jobs WHERE id = ?", (id,)).fetchone()
    if row is None:
        raise NotInWorkspace(f"no job {id!r} in this workspace: use the id that compile, benchmark or profile gave")
    return row


def _job_row(row: sqlite3.Row) -> JobRow:
    values = {name: row[name] for name in JobRow.model_fields}
    values |= {"request": json.loads(row["request"]), "answer": json.loads(row["answer"]) if row["answer"] else None}
    if row["state"] in ("queued", "running") and not owner_alive(row["owner"]):
        values |= {"state": "failed", "error": ORPHANED}
    return JobRow(**values)
