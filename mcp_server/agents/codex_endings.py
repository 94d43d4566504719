"""What the end of a Codex attempt means: its last error by code, status and words, or what its silence says. Pure."""

import re
from datetime import UTC, datetime, timedelta

from mcp_server.agents.agent import Ended, Ending
from mcp_server.agents.codex_log import Failure, Limits

NOTE_CHARACTERS = 600
NO_LAB = "required MCP servers failed to initialize"
_QUOTA_CODES = {"usage_limit_exceeded", "rate_limit_exceeded"}
_REFUSAL_CODES = {"cyber_policy", "bio_policy", "misalignment_policy_violation"}
_QUOTA = re.compile(r"usage limit|quota exceeded|rate limit|last status: 429|status 429", re.IGNORECASE)
_AUTH = re.compile(r"\b(401 unauthorized|403 forbidden|invalid api key|not logged in|log ?in again)\b", re.IGNORECASE)
_AGAIN = re.compile(r"try again at (?:(\w{3} \d{1,2})\w{2}, (\d{4}) )?(\d{1,2}:\d{2} [AP]M)", re.IGNORECASE)


def failed(failure: Failure, limits: Limits, now: datetime) -> Ended:
    """The ending that a failed turn means."""
    ending, until = _ending(failure), ""
    if ending == "quota":
        until = _iso(limits.reset) or _said_until(failure.message, now)
    return Ended(ending=ending, note=short(failure.message or failure.code), quota_until=until)


def short(text: str) -> str:
    """A note is a sentence or two."""
    return text if len(text) <= NOTE_CHARACTERS else f"{text[:NOTE_CHARACTERS]} ..."


def _ending(failure: Failure) -> Ending:
    # An error of the session log has a code; of the stream there are only words.
    if failure.code in _REFUSAL_CODES:
        return "refused"
    if failure.code == "session_budget_exceeded":
        return "budget"
    if failure.code in _QUOTA_CODES or failure.status == 429 or _QUOTA.search(failure.message):
        return "quota"
    if failure.code == "unauthorized" or failure.status in (401, 403) or _AUTH.search(failure.message):
        return "auth"
    return "api_error"


def _said_until(message: str, now: datetime) -> str:
    """From words such as `try again at Jan 1st, 2100 4:40 AM`, in UTC; without a day it is the next such time."""
    found = _AGAIN.search(message)
    if not found:
        return ""
    day, year, clock = found.groups()
    time = datetime.strptime(clock.upper(), "%I:%M %p").time()
    if day:
        return datetime.combine(datetime.strptime(f"{day} {year}", "%b %d %Y"), time, UTC).isoformat()
    today = datetime.combine(now.astimezone(UTC), time, UTC)
    return (today if today > now else today + timedelta(days=1)).isoformat()


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat() if seconds else ""
