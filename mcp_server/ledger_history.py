"""Runs and their history: append-only rows, each with a hash over its content and the row before."""

import json
import sqlite3
from collections.abc import Sequence

from mcp_server.ledger_schema import RunRow
from mcp_server.ledger_store import Store, digest, now, packed
from mcp_server.schema import HistoryLine
from toolkits.core.errors import InvalidInput, NotInWorkspace
from toolkits.core.schema import Json

_RUN = """SELECT *, EXISTS (SELECT 1 FROM history WHERE history.run = runs.run AND kind = 'finished') AS finished
FROM runs"""


class HistoryStore(Store):
    """What was started and what happened, in order."""

    def open_run(self, run: str, task: str, config: Json) -> tuple[RunRow, bool]:
        """Create the run with its first history row `run_opened`, or find it; True when it was created."""
        with self._recording() as db:
            row = db.execute(f"{_RUN} WHERE run = ?", (run,)).fetchone()
            if row is None:
                db.execute("INSERT INTO runs VALUES (?, ?, ?, ?)", (run, task, packed(config), now()))
                append_row(db, run, "run_opened", {"task": task, "config": config}, "")
                return _run_row(db.execute(f"{_RUN} WHERE run = ?", (run,)).fetchone()), True
        if row["task"] != task:
            raise InvalidInput(f"run {run!r} is about task {row['task']!r}, not {task!r}: choose another run name")
        return _run_row(row), False

    def run(self, run: str) -> RunRow:
        with self._reading() as db:
            row = db.execute(f"{_RUN} WHERE run = ?", (run,)).fetchone()
        if row is None:
            raise NotInWorkspace(f"no run {run!r}: the runs are {_named(self.runs())}")
        return _run_row(row)

    def runs(self) -> list[RunRow]:
        """All runs, oldest first."""
        with self._reading() as db:
            return [_run_row(row) for row in db.execute(f"{_RUN} ORDER BY created_at, run")]

    def append(self, run: str, kind: str, body: Json, role: str = "") -> HistoryLine:
        """Add a row; run "" holds what happens outside any run."""
        self._known(run)
        with self._recording() as db:
            return append_row(db, run, kind, json.loads(self.redact(packed(body))), role)

    def history(self, run: str, after: int = 0, limit: int = 50, kinds: Sequence[str] = ()) -> list[HistoryLine]:
        """Rows with a `seq` above `after`, in order; only of `kinds` when any is given."""
        self._known(run)
        wanted = f" AND kind IN ({', '.join('?' * len(kinds))})" if kinds else ""
        query = f"SELECT * FROM history WHERE run = ? AND seq > ?{wanted} ORDER BY seq LIMIT ?"
        with self._reading() as db:
            return [_line(row) for row in db.execute(query, (run, after, *kinds, limit))]

    def verify_chain(self, run: str) -> list[str]:
        """What is wrong with the history of a run, in words; empty when nothing is."""
        self._known(run)
        with self._reading() as db:
            broken = _broken_link(db, run)
            return ([broken] if broken else []) + _changed_evaluations(db, run)

    def _known(self, run: str) -> None:
        if run:
            self.run(run)


def append_row(db: sqlite3.Connection, run: str, kind: str, body: Json, role: str) -> HistoryLine:
    """Append within the caller's transaction."""
    last = db.execute("SELECT seq, hash FROM history WHERE run = ? ORDER BY seq DESC LIMIT 1", (run,)).fetchone()
    seq, previous = (last["seq"] + 1, last["hash"]) if last else (1, "")
    at, text = now(), packed(body)
    link = _hash(previous, run, seq, at, role, kind, text)
    db.execute("INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, ?)", (run, seq, at, role, kind, text, link))
    return HistoryLine(seq=seq, at=at, role=role, kind=kind, body=json.loads(text))


def _hash(previous: str, run: str, seq: int, at: str, role: str, kind: str, body: str) -> str:
    return digest(json.dumps([previous, run, seq, at, role, kind, body]))


def _broken_link(db: sqlite3.Connection, run: str) -> str:
    previous, expected = "", 1
    for row in db.execute("SELECT * FROM history WHERE run = ? ORDER BY seq", (run,)):
        what = f"history of run {run!r}, row {row['seq']} ({row['kind']}, {row['at']})"
        if row["seq"] != expected:
            return f"{what}: row {expected} is missing before it"
        content = (row["seq"], row["at"], row["role"], row["kind"], row["body"])
        if row["hash"] != _hash(previous, run, *content):
            return f"{what}: the hash does not fit its content and the row before, one of them was changed later"
        previous, expected = row["hash"], expected + 1
    return ""


def _changed_evaluations(db: sqlite3.Connection, run: str) -> list[str]:
    """Every evaluation must have its history row, with the digest of the result that is stored."""
    query = "SELECT body FROM history WHERE run = ? AND kind = 'evaluation' ORDER BY seq"
    events: list[Json] = [json.loads(row["body"]) for row in db.execute(query, (run,))]
    recorded = {event.get("evaluation"): event.get("record") for event in events}
    stored = {
        row["id"]: digest(row["result"])
        for row in db.execute("SELECT id, result FROM evaluations WHERE run = ?", (run,))
    }
    changed = [key for key in recorded if key in stored and recorded[key] != stored[key]]
    return (
        [f"evaluation {key}: its result was changed after it was recorded" for key in changed]
        + [f"evaluation {key} is in the history, but its record is gone" for key in recorded if key not in stored]
        + [f"evaluation {key} is recorded, but the history does not know it" for key in stored if key not in recorded]
    )


def _run_row(row: sqlite3.Row) -> RunRow:
    return RunRow.model_validate(dict(row) | {"config": json.loads(row["config"])})


def _line(row: sqlite3.Row) -> HistoryLine:
    return HistoryLine(seq=row["seq"], at=row["at"], role=row["role"], kind=row["kind"], body=json.loads(row["body"]))


def _named(runs: Sequence[RunRow]) -> str:
    return ", ".join(row.run for row in runs) or "none yet"
