"""Full-text search over a handful of documents, in memory, safe for any text that a user types."""

import re
import sqlite3
from collections.abc import Sequence
from contextlib import closing

TITLE_WEIGHT = 4.0
MAX_WORDS = 64
"""Of a query; the rest is ignored."""


def full_text_search(documents: Sequence[tuple[str, str, str]], query: str, limit: int) -> list[str]:
    """Keys of the (key, title, text) documents that share a word stem with the query, best first; no word: all keys."""
    words = re.findall(r"[^\W_]+", query)[:MAX_WORDS]
    if not words:
        return sorted(key for key, _, _ in documents)[:limit]
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE VIRTUAL TABLE docs USING fts5 (key UNINDEXED, title, text, tokenize = 'porter unicode61')")
        db.executemany("INSERT INTO docs VALUES (?, ?, ?)", documents)
        ranked = "SELECT key FROM docs WHERE docs MATCH ? ORDER BY bm25(docs, 0, ?, 1), key LIMIT ?"
        quoted = " OR ".join(f'"{word}"' for word in words)
        return [row[0] for row in db.execute(ranked, (quoted, TITLE_WEIGHT, limit))]
