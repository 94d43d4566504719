"""The connection behind the ledger: opened on first use, migrated, one short transaction a call."""

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import RLock

from mcp_server.ledger_schema import MIGRATIONS
from mcp_server.workspace import make_root
from toolkits.core.errors import HarnessError, LabError
from toolkits.core.judge.postmortem import with_remedy
from toolkits.core.process import started_at
from toolkits.core.schema import Json

BUSY_TIMEOUT_S = 10.0


class Store:
    """Transactions on one database file that several processes share."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.redact: Callable[[str], str] = str
        """Takes secrets out of what others said, before it is kept."""
        self._connection: sqlite3.Connection | None = None
        self._lock = RLock()

    def close(self) -> None:
        with self._lock:
            if self._connection:
                self._connection.close()
                self._connection = None

    @contextmanager
    def _reading(self) -> Generator[sqlite3.Connection]:
        """A consistent view of the database."""
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def _writing(self) -> Generator[sqlite3.Connection]:
        """All of the block or none of it, with no other writer in between; survives every death of a process."""
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection

    @contextmanager
    def _recording(self) -> Generator[sqlite3.Connection]:
        """As `_writing`, and survives a power cut too: for what the audit trail has acknowledged."""
        with self._transaction("BEGIN IMMEDIATE", synchronous="FULL") as connection:
            yield connection

    @contextmanager
    def _transaction(self, begin: str, synchronous: str = "NORMAL") -> Generator[sqlite3.Connection]:
        with self._lock, _lab_failures(self.path):
            connection = self._opened()
            # FULL flushes the disk, 10 ms and more on a busy machine: too much for a heartbeat beside a timed kernel.
            connection.execute(f"PRAGMA synchronous = {synchronous}")
            connection.execute(begin)
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            make_root(self.path.parent)
            connection = sqlite3.connect(
                self.path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
            )
            connection.row_factory = sqlite3.Row
            try:
                _prepare(connection, self.path)
            except (sqlite3.Error, LabError):
                connection.close()
                raise
            self._connection = connection
        return self._connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    _use_wal(connection)
    if _version(connection) == len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")
    version = _version(connection)
    if version > len(MIGRATIONS):
        raise LabError(f"{path} was written by a newer kernel-lab (version {version}): upgrade, or use another --root")
    for statements in MIGRATIONS[version:]:
        for statement in statements:
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    connection.execute("COMMIT")


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch the journal; SQLite's own waiting for locks does not cover several processes that do so at once."""
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.005)
        else:
            return


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


@contextmanager
def _lab_failures(path: Path) -> Generator[None]:
    """A full disk, a lock that is never released or a damaged file is the lab's failure, not a bug."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if type(error) not in (sqlite3.DatabaseError, sqlite3.OperationalError):
            raise
        raise HarnessError(with_remedy(f"the ledger {path} cannot be used: {error}")) from error


def now() -> str:
    """UTC, ISO 8601, milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def packed(value: Json) -> str:
    """One canonical text for a JSON object; infinities pass, so that no odd figure costs a record."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def plain(text: str) -> str:
    """Text from outside, without the lone surrogates that no database accepts."""
    return text.encode("utf-8", "replace").decode()


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def owner_of(pid: int) -> str:
    """Names a process for ever: its pid, and when it started."""
    return f"{pid}:{started_at(pid) or 0}"


def this_process() -> str:
    """The owner to give to work that this process does."""
    return owner_of(os.getpid())


def owner_alive(owner: str) -> bool:
    pid, _, ticks = owner.partition(":")
    with suppress(ValueError):
        return started_at(int(pid)) == int(ticks)
    return False
