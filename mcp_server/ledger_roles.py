"""Roles: who acts under which token, for how long, by which attempts, and what they have read."""

import secrets
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from mcp_server.budgets import Caps
from mcp_server.ledger_schema import AttemptRow, RoleRow
from mcp_server.ledger_spend import SpendStore
from mcp_server.ledger_store import digest, now, owner_alive, owner_of, plain, this_process
from mcp_server.schema import RoleState
from toolkits.core.errors import NotInWorkspace


class RoleStore(SpendStore):
    """The roles of all runs. Only the hash of a token is kept."""

    def add_role(
        self, run: str, team: int, name: str, agent: str, token: str, caps: Caps, folder: Path, parent: str = ""
    ) -> RoleRow:
        """A running role, watched and owned by this process until `set_role` names the role's own."""
        id, this = f"r{secrets.token_hex(6)}", this_process()
        values = {
            "id": id,
            "run": run,
            "team": team,
            "name": name,
            "agent": agent,
            "token_hash": digest(token),
            "state": "running",
            "owner": this,
            "watcher": this,
            "note": "",
            "folder": str(folder),
            **caps.model_dump(),
            "started_at": now(),
            "ended_at": "",
            "parent": parent,
        }
        with self._recording() as db:
            names = ", ".join(values)
            db.execute(f"INSERT INTO roles ({names}) VALUES ({', '.join('?' * len(values))})", tuple(values.values()))
            return _role_row(_found(db, id))

    def role(self, id: str) -> RoleRow:
        """The role as it stands; a running one reads as crashed when its process and its server are dead."""
        with self._reading() as db:
            return _role_row(_found(db, id))

    def role_by_token(self, token: str) -> RoleRow | None:
        """Whose token it is; also of a role that has ended, so look at its state."""
        with self._reading() as db:
            row = db.execute("SELECT * FROM roles WHERE token_hash = ?", (digest(token),)).fetchone()
        return _role_row(row) if row else None

    def roles(self, run: str) -> list[RoleRow]:
        """The roles of a run, oldest first."""
        with self._reading() as db:
            return [_role_row(row) for row in db.execute("SELECT * FROM roles WHERE run = ? ORDER BY rowid", (run,))]

    def helpers(self, row: RoleRow) -> list[RoleRow]:
        """The roles that a role started, oldest first."""
        query = "SELECT * FROM roles WHERE run = ? AND parent = ? ORDER BY rowid"
        with self._reading() as db:
            return [_role_row(one) for one in db.execute(query, (row.run, row.id))]

    def set_role(self, id: str, state: RoleState, note: str = "", pid: int | None = None) -> None:
        """Record a change; an empty note and no pid leave what is there, and a role that has ended stays so."""
        ended_at = "" if state == "running" else now()
        with self._recording() as db:
            row = _found(db, id)
            owner = owner_of(pid) if pid is not None else row["owner"]
            db.execute(
                "UPDATE roles SET state = ?, note = ?, owner = ?, ended_at = ? WHERE id = ? AND ended_at = ''",
                (state, plain(self.redact(note)) or row["note"], owner, ended_at, id),
            )

    def ask_to_stop(self, id: str) -> None:
        """Whoever watches the role will see it."""
        with self._writing() as db:
            db.execute("UPDATE roles SET stop = 1 WHERE id = ?", (id,))

    # --- attempts ---------------------------------------------------------------------------------------------------

    def add_attempt(self, row: RoleRow, agent: str, session: str) -> int:
        """A new process of the role is about to start; gives the attempt's number."""
        with self._writing() as db:
            count = db.execute("SELECT count(*) FROM attempts WHERE role = ?", (row.id,)).fetchone()[0]
            values = (row.id, row.run, count + 1, agent, session, now())
            db.execute("INSERT INTO attempts VALUES (?, ?, ?, ?, ?, ?, '', '', '')", values)
            db.execute("UPDATE roles SET acting = ? WHERE id = ?", (agent, row.id))
            return count + 1

    def set_session(self, role: str, number: int, session: str) -> None:
        with self._writing() as db:
            db.execute("UPDATE attempts SET session = ? WHERE role = ? AND number = ?", (session, role, number))

    def end_attempt(self, role: str, number: int, ending: str, note: str) -> None:
        values = (now(), ending, plain(self.redact(note)), role, number)
        with self._recording() as db:
            db.execute("UPDATE attempts SET ended_at = ?, ending = ?, note = ? WHERE role = ? AND number = ?", values)

    def attempts(self, role: str) -> list[AttemptRow]:
        """Of a role, in order."""
        with self._reading() as db:
            found = db.execute("SELECT * FROM attempts WHERE role = ? ORDER BY number", (role,))
            return [AttemptRow(**dict(row)) for row in found]

    def ended_attempts(self, run: str, since: str) -> list[AttemptRow]:
        """Of all roles of a run, those that ended at or after `since`, in order."""
        query = "SELECT * FROM attempts WHERE run = ? AND ended_at >= ? AND ended_at <> '' ORDER BY ended_at"
        with self._reading() as db:
            return [AttemptRow(**dict(row)) for row in db.execute(query, (run, since))]

    # --- what is credited -------------------------------------------------------------------------------------------

    def note_read(self, run: str, role: str, what: str) -> None:
        """Remember that the role has opened `what`; the first time counts."""
        with self._writing() as db:
            db.execute("INSERT OR IGNORE INTO reads VALUES (?, ?, ?, ?)", (run, role, plain(what), now()))

    def reads(self, run: str, role: str) -> list[str]:
        """What the role has opened, in order."""
        query = "SELECT what FROM reads WHERE run = ? AND role = ? ORDER BY rowid"
        with self._reading() as db:
            return [row["what"] for row in db.execute(query, (run, role))]

    def credits(self, run: str, role: str) -> int:
        """How much was ever credited to the role: jobs, first readings, and rows of the history that are its own."""
        queries = (
            "SELECT count(*) FROM jobs WHERE role = ? AND run = ?",
            "SELECT count(*) FROM joins WHERE role = ? AND ? IS NOT NULL",
            "SELECT count(*) FROM reads WHERE role = ? AND run = ?",
            "SELECT count(*) FROM history WHERE role = ? AND run = ? AND kind NOT LIKE 'role/_%' ESCAPE '/'",
        )
        with self._reading() as db:
            return sum(int(db.execute(query, (role, run)).fetchone()[0]) for query in queries)

    def is_waiting(self, row: RoleRow) -> bool:
        """Whether a job that it asked for is in the queue or at work, or a helper of it is."""
        query = """SELECT owner FROM jobs WHERE state IN ('queued', 'running')
            AND (role = ? OR id IN (SELECT job FROM joins WHERE role = ?))"""
        with self._reading() as db:
            owners = [job["owner"] for job in db.execute(query, (row.id, row.id))]
        return any(map(owner_alive, owners)) or any(one.state == "running" for one in self.helpers(row))

    def evaluations_after(self, run: str, role: str, known: int) -> Sequence[tuple[str, str]]:
        """Id and status of the role's evaluations beyond the first `known`."""
        query = """SELECT id, json_extract(result, '$.status') AS status FROM evaluations
            WHERE run = ? AND role = ? ORDER BY rowid LIMIT -1 OFFSET ?"""
        with self._reading() as db:
            return [(row["id"], row["status"]) for row in db.execute(query, (run, role, known))]


def _found(db: sqlite3.Connection, id: str) -> sqlite3.Row:
    row = db.execute("SELECT * FROM roles WHERE id = ?", (id,)).fetchone()
    if row is None:
        raise NotInWorkspace(f"no role {id!r} in this workspace: use the id that spawn_role gave")
    return row


def _role_row(row: sqlite3.Row) -> RoleRow:
    values = {name: row[name] for name in RoleRow.model_fields}
    # Between two processes of the role, what comes next is for the server that watches it to say.
    if row["state"] == "running" and not owner_alive(row["owner"]) and not owner_alive(row["watcher"]):
        values |= {"state": "crashed", "note": row["note"] or "its process ended without a word"}
    return RoleRow(**values)
