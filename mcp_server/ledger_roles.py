"""Roles: who acts under which token, what they spend and what they have read."""

import secrets
import sqlite3
from pathlib import Path

from mcp_server.ledger_schema import RoleRow, Spent
from mcp_server.ledger_store import Store, digest, now, owner_alive, owner_of, plain, this_process
from mcp_server.schema import RoleState
from toolkits.core.errors import NotInWorkspace


class RoleStore(Store):
    """The roles of all runs. Only the hash of a token is kept."""

    def add_role(
        self,
        run: str,
        team: int,
        name: str,
        agent: str,
        token: str,
        evaluations: int,
        minutes: float,
        usd: float,
        folder: Path,
    ) -> RoleRow:
        """A running role, owned by this process until `set_role` names the role's own."""
        id = f"r{secrets.token_hex(6)}"
        identity = (id, run, team, name, agent, digest(token), "running", this_process(), "", str(folder))
        with self._recording() as db:
            db.execute(
                f"INSERT INTO roles VALUES ({', '.join('?' * 15)})", (*identity, evaluations, minutes, usd, now(), "")
            )
            return _role_row(_found(db, id))

    def role(self, id: str) -> RoleRow:
        """The role as it stands; a running one whose process is dead reads as crashed."""
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

    def set_role(self, id: str, state: RoleState, note: str = "", pid: int | None = None) -> None:
        """Record a change; an empty note and no pid leave what is there, and a role that has ended stays so."""
        ended_at = "" if state == "running" else now()
        with self._recording() as db:
            row = _found(db, id)
            owner = owner_of(pid) if pid is not None else row["owner"]
            db.execute(
                "UPDATE roles SET state = ?, note = ?, owner = ?, ended_at = ? WHERE id = ? AND ended_at = ''",
                (state, plain(note) or row["note"], owner, ended_at, id),
            )

    def spend(self, run: str, role: str, usd: float, tokens: int, seconds: float) -> None:
        with self._recording() as db:
            db.execute("INSERT INTO spend VALUES (?, ?, ?, ?, ?, ?)", (run, role, now(), usd, tokens, seconds))

    def spent(self, run: str, role: str | None = None) -> Spent:
        """The sum for a run, or for one of its roles."""
        query = """SELECT coalesce(sum(usd), 0) AS usd, coalesce(sum(tokens), 0) AS tokens,
            coalesce(sum(seconds), 0) AS seconds FROM spend WHERE run = ? AND role = coalesce(?, role)"""
        with self._reading() as db:
            return Spent(**dict(db.execute(query, (run, role)).fetchone()))

    def note_read(self, run: str, role: str, what: str) -> None:
        """Remember that the role has opened `what`; the first time counts."""
        with self._writing() as db:
            db.execute("INSERT OR IGNORE INTO reads VALUES (?, ?, ?, ?)", (run, role, plain(what), now()))

    def reads(self, run: str, role: str) -> list[str]:
        """What the role has opened, in order."""
        query = "SELECT what FROM reads WHERE run = ? AND role = ? ORDER BY rowid"
        with self._reading() as db:
            return [row["what"] for row in db.execute(query, (run, role))]


def _found(db: sqlite3.Connection, id: str) -> sqlite3.Row:
    row = db.execute("SELECT * FROM roles WHERE id = ?", (id,)).fetchone()
    if row is None:
        raise NotInWorkspace(f"no role {id!r} in this workspace: use the id that spawn_role gave")
    return row


def _role_row(row: sqlite3.Row) -> RoleRow:
    values = {name: row[name] for name in RoleRow.model_fields}
    if row["state"] == "running" and not owner_alive(row["owner"]):
        values |= {"state": "crashed", "note": row["note"] or "its process ended without a word"}
    return RoleRow(**values)
