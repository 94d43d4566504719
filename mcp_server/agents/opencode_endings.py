"""What the end of an opencode attempt means: what it reported as an error, or what its watch gave up on. Pure."""

import re
from datetime import UTC, datetime

from mcp_server.agents.agent import Ended, Ending
from toolkits.core.schema import Record

NOTE_CHARACTERS = 600
SOON_S = 30.0
"""A retry that is due sooner is opencode's own pace, not the vendor's word."""
LAB_ERROR = "Error executing tool"
"""How an answer of the lab that says no begins; anything else that fails a call is a failure to reach it."""
_QUOTA = re.compile(r"quota|rate.?limit|usage limit|too many requests|\b429\b|credit|billing", re.IGNORECASE)
_UNREACHED = re.compile(
    r"connect|socket|fetch failed|econn|unauthorized|\b40[134]\b|timed out|session|terminated|prevents you from using",
    re.IGNORECASE,
)


class Details(Record, extra="ignore"):
    message: str = ""
    statusCode: int = 0


class Problem(Record, extra="ignore"):
    """What an `error` line holds."""

    name: str = ""
    data: Details = Details()


class GivenUp(Record, extra="ignore"):
    """Why the watch ended opencode."""

    why: str
    message: str = ""
    next: float = 0.0
    """When it would have tried again, in milliseconds since 1970."""


def unreached(error: str) -> bool:
    """Whether a failed call of a tool of the lab means that the lab was not there, or not allowed."""
    return not error.startswith(LAB_ERROR) and bool(_UNREACHED.search(error))


def failed(problem: Problem) -> Ended:
    """The ending that a reported error means."""
    ending = _ending(problem)
    return Ended(ending=ending, note=short(problem.data.message or problem.name))


def given_up(watch: GivenUp, now: datetime) -> Ended:
    """The ending that the watch's reason means."""
    if watch.why == "no_lab":
        return Ended(ending="tools_missing", note=short(f"the lab did not answer when it started: {watch.message}"))
    if not _QUOTA.search(watch.message):
        return Ended(ending="api_error", note=short(watch.message))
    due = datetime.fromtimestamp(watch.next / 1000, UTC)
    until = due.isoformat(timespec="seconds") if (due - now).total_seconds() > SOON_S else ""
    return Ended(ending="quota", note=short(watch.message), quota_until=until)


def short(text: str) -> str:
    """A note is a sentence or two."""
    return text if len(text) <= NOTE_CHARACTERS else f"{text[:NOTE_CHARACTERS]} ..."


def _ending(problem: Problem) -> Ending:
    if problem.name == "ContentFilterError":
        return "refused"
    if problem.name == "MessageAbortedError":
        return "crashed"
    if problem.name == "ProviderAuthError" or problem.data.statusCode in (401, 403):
        return "auth"
    if problem.data.statusCode in (402, 429) or (problem.data.statusCode and _QUOTA.search(problem.data.message)):
        return "quota"
    return "api_error"
