"""How an open model's attempt ended, from what its endpoint and the lab raised. Sends and waits for nothing."""

import re
from datetime import UTC, datetime, timedelta

from pydantic_ai.exceptions import (
    AgentRunError,
    ContentFilterError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelServerError,
    ModelUnavailableError,
)

from mcp_server.agents.agent import Ended
from mcp_server.agents.refusal import declines

PASSING = (ModelServerError, ModelUnavailableError, ModelConnectionError)
"""What may be over at the next try."""
NOTE_CHARACTERS = 400
_OVERFLOW = re.compile(r"context.{0,40}(size|length|window)|(size|length|window).{0,40}context", re.IGNORECASE)


class LabGone(Exception):
    """The lab no longer answers, or does not accept the role's token."""


def after(problem: AgentRunError | LabGone, now: datetime | None = None) -> Ended:
    """The ending that a problem means once nothing more is tried."""
    match problem:
        case LabGone():
            return _ended("tools_missing", f"the lab is gone: {problem}")
        case ModelAuthenticationError():
            return _ended("auth", f"the endpoint accepts no request with this key: {problem}")
        case ModelRateLimitError() | ModelQuotaExceededError():
            return _ended("quota", str(problem), until=_until(problem.retry_after, now))
        case ContentFilterError():
            return _ended("refused", str(problem))
        case ModelAPIError():
            return _ended("api_error", str(problem))
        case _:
            return _ended("crashed", str(problem))


def overflows(problem: ModelAPIError) -> bool:
    """Whether a request was refused for its length; llama.cpp and Ollama say so in words of their own."""
    return isinstance(problem, ModelContextWindowExceededError) or (
        not isinstance(problem, PASSING) and bool(_OVERFLOW.search(f"{problem.body or problem}"))
    )


def final(text: str, finish: str | None, worked: bool) -> Ended:
    """The ending that a model's last reply means; `worked`: it called the lab at least once."""
    if finish == "content_filter":
        return _ended("refused", text or "the reply was withheld by a content filter")
    if not worked and declines(text):
        return _ended("refused", text)
    if finish == "length":
        return _ended("crashed", f"the last reply was cut off at the model's limit: {text}")
    return _ended("done", text)


def _ended(ending: str, note: str, until: str = "") -> Ended:
    short = note if len(note) <= NOTE_CHARACTERS else f"{note[:NOTE_CHARACTERS]} ..."
    return Ended.model_validate({"ending": ending, "note": short, "quota_until": until})


def _until(seconds: float | None, now: datetime | None) -> str:
    moment = now or datetime.now(UTC)
    return (moment + timedelta(seconds=seconds)).isoformat(timespec="seconds") if seconds else ""
