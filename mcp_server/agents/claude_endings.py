"""What the end of a Claude Code attempt means, from its result line, what it saw of the lab, and its exit. Pure."""

import re
from datetime import UTC, datetime

from mcp_server.agents.agent import Ended, Ending, Exit
from mcp_server.agents.claude_lines import Line
from mcp_server.agents.refusal import declines
from toolkits.core.schema import Record

NOTE_CHARACTERS = 600
_AUTH = {
    "authentication_failed",
    "oauth_org_not_allowed",
    "account_on_hold",
    "verification_required",
    "cloud_credential_error",
}
_QUOTA = {"rate_limit", "billing_error"}
_LIMIT_TEXT = re.compile(r"usage limit reached\|(\d{10})")


class Seen(Record):
    """What the lines before the result told."""

    connected: bool = False
    """Whether the lab was there when it started."""
    server: str = "not mentioned"
    """What the client said of the lab."""
    answers: int = 0
    """Calls that the lab answered."""
    unanswered: str = ""
    """Why the last call of the lab got no answer; empty: it did, or there was none."""
    error: str = ""
    """Kind of the last failed request."""
    reset: float = 0.0
    """When the quota of a subscription ends, in seconds since 1970."""


def verdict(result: Line | None, seen: Seen, exit: Exit) -> Ended:
    """The ending, and why; no exit status and no subtype is believed alone."""
    if result is None:
        return Ended(ending="crashed", note=_first_of(f"{exit.how} without a result", exit.errors.strip()))
    if result.subtype == "error_max_budget_usd":
        return Ended(ending="budget", note=short("; ".join(result.errors) or "its own limit is reached"))
    if result.stop_reason == "refusal":
        return Ended(ending="refused", note=short(result.result or "the vendor stopped the reply"))
    if result.is_error or result.subtype != "success":
        return _failed(result, seen)
    return _completed(result, seen, exit)


def short(text: str) -> str:
    """A note is a sentence or two."""
    return text if len(text) <= NOTE_CHARACTERS else f"{text[:NOTE_CHARACTERS]} ..."


def _failed(result: Line, seen: Seen) -> Ended:
    words = result.result or "; ".join(result.errors) or result.subtype
    if not result.result and not result.api_error_status:
        return Ended(ending="crashed", note=_first_of(f"it broke off ({result.terminal_reason})", words))
    ending = _vendor(result.api_error_status, seen.error)
    return Ended(ending=ending, note=short(words), quota_until=_until(words, seen) if ending == "quota" else "")


def _vendor(status: int | None, error: str) -> Ending:
    # The kind says more than the status: a used-up credit is a 400.
    if error in _QUOTA or status == 429:
        return "quota"
    return "auth" if error in _AUTH or status in (401, 403) else "api_error"


def _completed(result: Line, seen: Seen, exit: Exit) -> Ended:
    words = result.result.strip()
    if not seen.connected and not seen.answers:
        return Ended(ending="tools_missing", note=f"the lab was not there when it started ({seen.server})")
    if seen.unanswered:
        return Ended(ending="tools_missing", note=short(f"the lab stopped answering: {seen.unanswered}"))
    if not seen.answers and (not words or declines(words)):
        return Ended(ending="refused", note=words or "it ended its turn without a word")
    if exit.returncode != 0 or result.terminal_reason not in ("completed", ""):
        return Ended(ending="crashed", note=f"{exit.how} after its turn ended ({result.terminal_reason})")
    return Ended(ending="done", note=short(words))


def _until(words: str, seen: Seen) -> str:
    told = _LIMIT_TEXT.search(words)
    reset = seen.reset or (float(told[1]) if told else 0.0)
    return datetime.fromtimestamp(reset, UTC).isoformat() if reset else ""


def _first_of(what: str, why: str) -> str:
    return short(f"{what}: {why}" if why else what)
