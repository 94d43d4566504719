"""The tables of the ledger and the records that its rows become. Data only: nothing here opens a database."""

from pathlib import Path

from mcp_server.budgets import Caps
from mcp_server.schema import JobKind, JobState, RoleState
from toolkits.core.schema import BenchmarkResult, Json, Record


class RunRow(Record):
    """One run of a supervisor on one task."""

    run: str
    task: str
    config: Json
    """Frozen when the run was created."""
    created_at: str
    finished: bool
    """The history holds a `finished` row."""


class JobRow(Record):
    """Work that may outlive the call that asked for it."""

    id: str
    kind: JobKind
    key: str
    """What the work is about: an open job with the same key is joined, not repeated."""
    run: str
    role: str
    shared: bool
    """Another than `role` joined it, so the end of the role does not end it."""
    state: JobState
    owner: str
    """`pid:start_ticks` of the server that does the work."""
    heartbeat: str
    request: Json
    answer: Json | None
    error: str
    created_at: str


class EvaluationRow(Record):
    """One measured candidate; written once, never changed."""

    id: str
    job: str
    run: str
    role: str
    task: str
    solution: str
    """Content hash; the sources are in the workspace under it."""
    created_at: str
    result: BenchmarkResult


class RoleRow(Record):
    """One agent at work in a run. A cap of 0 is no cap."""

    id: str
    run: str
    team: int
    name: str
    agent: str
    """The spec it was started with: one agent, or several in order of preference."""
    acting: str
    """Which of them plays it now, or did last; empty before the first attempt."""
    parent: str
    """Id of the role that it helps; empty: it is nobody's helper."""
    state: RoleState
    owner: str
    """`pid:start_ticks` of the role's process; of the server that watches it while it has none."""
    watcher: str
    """`pid:start_ticks` of that server."""
    stop: bool
    """Somebody asked for its end."""
    note: str
    folder: Path
    evaluations: int
    minutes: float
    usd: float
    tokens: int
    started_at: str
    ended_at: str
    """Empty while it runs."""

    @property
    def caps(self) -> Caps:
        return Caps(usd=self.usd, tokens=self.tokens, minutes=self.minutes, evaluations=self.evaluations)


class AttemptRow(Record):
    """One process of a role, from its start to the meaning of its end."""

    role: str
    run: str
    number: int
    agent: str
    """`name` or `name:model`."""
    session: str
    """The agent's own name for it, to go on with; empty: it gave none."""
    started_at: str
    ended_at: str
    """Empty while it is at work."""
    ending: str
    note: str


class Spent(Record):
    """What a run or a role has used up."""

    usd: float
    tokens: int
    seconds: float


MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE runs (run TEXT PRIMARY KEY, task TEXT NOT NULL, config TEXT NOT NULL, created_at TEXT NOT NULL)"
        " STRICT",
        "CREATE TABLE history (run TEXT NOT NULL, seq INTEGER NOT NULL, at TEXT NOT NULL, role TEXT NOT NULL,"
        " kind TEXT NOT NULL, body TEXT NOT NULL, hash TEXT NOT NULL, PRIMARY KEY (run, seq)) STRICT",
        "CREATE TABLE jobs (id TEXT PRIMARY KEY, kind TEXT NOT NULL, key TEXT NOT NULL, run TEXT NOT NULL,"
        " role TEXT NOT NULL, state TEXT NOT NULL, owner TEXT NOT NULL, heartbeat TEXT NOT NULL,"
        " request TEXT NOT NULL, answer TEXT, error TEXT NOT NULL, cancel INTEGER NOT NULL,"
        " created_at TEXT NOT NULL) STRICT",
        "CREATE INDEX open_jobs ON jobs (key) WHERE state IN ('queued', 'running')",
        "CREATE TABLE evaluations (id TEXT PRIMARY KEY, job TEXT NOT NULL UNIQUE, run TEXT NOT NULL,"
        " role TEXT NOT NULL, task TEXT NOT NULL, solution TEXT NOT NULL, created_at TEXT NOT NULL,"
        " result TEXT NOT NULL) STRICT",
        "CREATE INDEX evaluations_of_run ON evaluations (run, role)",
        "CREATE TABLE roles (id TEXT PRIMARY KEY, run TEXT NOT NULL, team INTEGER NOT NULL, name TEXT NOT NULL,"
        " agent TEXT NOT NULL, token_hash TEXT NOT NULL UNIQUE, state TEXT NOT NULL, owner TEXT NOT NULL,"
        " note TEXT NOT NULL, folder TEXT NOT NULL, evaluations INTEGER NOT NULL, minutes REAL NOT NULL,"
        " usd REAL NOT NULL, started_at TEXT NOT NULL, ended_at TEXT NOT NULL) STRICT",
        "CREATE TABLE spend (run TEXT NOT NULL, role TEXT NOT NULL, at TEXT NOT NULL, usd REAL NOT NULL,"
        " tokens INTEGER NOT NULL, seconds REAL NOT NULL) STRICT",
        "CREATE INDEX spend_of_run ON spend (run, role)",
        "CREATE TABLE reads (run TEXT NOT NULL, role TEXT NOT NULL, what TEXT NOT NULL, at TEXT NOT NULL,"
        " PRIMARY KEY (run, role, what)) STRICT",
        # The insert guard also stops INSERT OR REPLACE, which fires no delete trigger.
        "CREATE TRIGGER history_in_order BEFORE INSERT ON history"
        " WHEN NEW.seq <> 1 + (SELECT coalesce(max(seq), 0) FROM history WHERE run = NEW.run)"
        " BEGIN SELECT raise(ABORT, 'history is written in order'); END",
        "CREATE TRIGGER history_is_kept BEFORE DELETE ON history"
        " BEGIN SELECT raise(ABORT, 'history is append-only'); END",
        "CREATE TRIGGER history_is_final BEFORE UPDATE ON history"
        " BEGIN SELECT raise(ABORT, 'history is append-only'); END",
        "CREATE TRIGGER evaluations_are_kept BEFORE DELETE ON evaluations"
        " BEGIN SELECT raise(ABORT, 'evaluations are append-only'); END",
        "CREATE TRIGGER evaluations_are_final BEFORE UPDATE ON evaluations"
        " BEGIN SELECT raise(ABORT, 'evaluations are append-only'); END",
    ),
    ("ALTER TABLE jobs ADD COLUMN shared INTEGER NOT NULL DEFAULT 0",),
    (
        "ALTER TABLE roles ADD COLUMN tokens INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE roles ADD COLUMN parent TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE roles ADD COLUMN acting TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE roles ADD COLUMN watcher TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE roles ADD COLUMN stop INTEGER NOT NULL DEFAULT 0",
        "CREATE TABLE attempts (role TEXT NOT NULL, run TEXT NOT NULL, number INTEGER NOT NULL, agent TEXT NOT NULL,"
        " session TEXT NOT NULL, started_at TEXT NOT NULL, ended_at TEXT NOT NULL, ending TEXT NOT NULL,"
        " note TEXT NOT NULL, PRIMARY KEY (role, number)) STRICT",
        "CREATE INDEX attempts_of_run ON attempts (run, ended_at)",
        "CREATE TABLE joins (job TEXT NOT NULL, role TEXT NOT NULL, PRIMARY KEY (job, role)) STRICT",
        "CREATE INDEX joins_of_role ON joins (role)",
        "CREATE INDEX jobs_of_role ON jobs (role)",
        "CREATE INDEX roles_of_run ON roles (run, parent)",
        "CREATE INDEX history_of_role ON history (run, role)",
    ),
)
"""Statements that lead from version n to n + 1; only ever added to."""
