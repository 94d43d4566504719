"""What Codex writes into a session's log as it works: tokens of every reply, limits, the cause of an error. Reads only.

The same session goes on in the same file when it is resumed, so what was there before counts as known.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from mcp_server.agents.agent import Usage
from toolkits.core.schema import Json, Record

_KINDS = ("token_usage_record", "token_count", "task_complete", "turn_context")
"""Lines that hold none of these words are not parsed: they may hold whole answers of tools."""


class Total(Record, extra="ignore"):
    """Tokens of a whole session; what was cached is part of the input, reasoning part of the output."""

    input_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_input_tokens: int = 0
    output_tokens: int = 0

    def beyond(self, known: "Total", model: str) -> Usage:
        """What came since `known`, in kinds that do not overlap."""
        cached = max(self.cached_input_tokens - known.cached_input_tokens, 0)
        written = max(self.cache_write_input_tokens - known.cache_write_input_tokens, 0)
        return Usage(
            model=model,
            input_tokens=max(self.input_tokens - known.input_tokens - cached - written, 0),
            cache_read_tokens=cached,
            cache_write_tokens=written,
            output_tokens=max(self.output_tokens - known.output_tokens, 0),
        )


class Window(Record, extra="ignore"):
    """One of the limits that a plan has."""

    used_percent: float = 0.0
    resets_at: float = 0.0
    """Seconds since 1970; 0: not said."""


class Limits(Record, extra="ignore"):
    primary: Window | None = None
    secondary: Window | None = None

    @property
    def reset(self) -> float:
        """When the last of the limits that are used up is lifted; 0: none is, or it is not said."""
        windows = [window for window in (self.primary, self.secondary) if window and window.used_percent >= 100]
        return max((window.resets_at for window in windows), default=0.0)


class Failure(Record, extra="ignore"):
    """Why a turn ended: in words, and by a code of Codex or an HTTP status inside one."""

    message: str = ""
    codex_error_info: str | dict[str, Json] | None = None

    @property
    def code(self) -> str:
        info = self.codex_error_info
        return next(iter(info), "") if isinstance(info, dict) else info or ""

    @property
    def status(self) -> int:
        """Of HTTP; 0: not said."""
        info = self.codex_error_info
        details = list(info.values()) if isinstance(info, dict) else []
        status = details[0].get("http_status_code") if details else None
        return status if isinstance(status, int) else 0


class _Info(Record, extra="ignore"):
    total_token_usage: Total | None = None


class _Payload(Record, extra="ignore"):
    type: str = ""
    thread_token_usage: Total | None = None
    info: _Info | None = None
    rate_limits: Limits | None = None
    error: Failure | None = None
    model: str = ""


class _Line(Record, extra="ignore"):
    type: str = ""
    payload: _Payload = _Payload()


class SessionLog:
    """The log of one session, from where it stood when this was made."""

    def __init__(self, home: Path, session: str, model: str) -> None:
        self.model = model
        """By the log, else as it was asked for."""
        self.failure: Failure | None = None
        self.limits = Limits()
        self._sessions = home / "sessions"
        self._file: Path | None = None
        self._read_to = 0
        self._known = Total()
        if session:
            self.read(session)
            self.failure, self.limits = None, Limits()

    def read(self, session: str) -> list[Usage]:
        """What was used since the last look; the log may not be there yet."""
        self._file = self._file or next(self._sessions.glob(f"*/*/*/rollout-*{session}.jsonl"), None)
        return [usage for line in self._lines() if (usage := self._hear(line))] if self._file else []

    def count(self, total: Total) -> Usage | None:
        """What a new total adds to those so far; None: nothing."""
        usage = total.beyond(self._known, self.model)
        self._known = total if usage.tokens else self._known
        return usage if usage.tokens else None

    def _hear(self, line: _Line) -> Usage | None:
        said = line.payload
        if line.type == "turn_context":
            self.model = said.model or self.model
        self.failure = said.error or self.failure
        self.limits = said.rate_limits or self.limits
        total = said.thread_token_usage or (said.info.total_token_usage if said.info else None)
        return self.count(total) if total else None

    def _lines(self) -> Iterator[_Line]:
        """Whole lines only: the last one may still be in the making."""
        assert self._file
        with self._file.open("rb") as stream:
            stream.seek(self._read_to)
            for raw in stream:
                if not raw.endswith(b"\n"):
                    break
                self._read_to += len(raw)
                if parsed := _parsed(raw):
                    yield parsed


def _parsed(raw: bytes) -> _Line | None:
    head = raw[:200].decode("utf-8", errors="replace")
    if not any(kind in head for kind in _KINDS):
        return None
    try:
        return _Line.model_validate(json.loads(raw))
    except (ValueError, ValidationError):
        return None
