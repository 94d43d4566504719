"""How an agent behind the Agent Client Protocol ended: by its stop reason, or the words of its error. Pure."""

import re

from mcp_server.agents.agent import Ended, Ending
from mcp_server.agents.refusal import declines

AUTH_REQUIRED = -32000
NOTE_CHARACTERS = 400
WORDS: list[tuple[Ending, str]] = [
    ("auth", r"\b40[13]\b|unauthori[sz]ed|forbidden|authenticat|api.?key|log ?in\b"),
    ("quota", r"\b429\b|\b402\b|rate.?limit|too many requests|quota|usage limit|credit|billing"),
    ("api_error", r"\b5\d\d\b|overloaded|server error|unavailable|connect|ECONN|socket|network|timed? ?out"),
]
"""The protocol has one error for all of this, so its text decides; the first that fits."""


def of_error(code: int, text: str) -> Ended:
    """Of a request that the agent answered with an error."""
    ending: Ending = "auth" if code == AUTH_REQUIRED else _by_words(text)
    return Ended(ending=ending, note=_short(text), evidence=[f"protocol error {code}"])


def of_turn(stop_reason: str, text: str, worked: bool) -> Ended:
    """Of a turn that the agent says is over; `worked`: it called the lab at least once."""
    evidence = [f"stop reason {stop_reason}"]
    match stop_reason:
        case "end_turn":
            ending: Ending = "refused" if not worked and declines(text) else "done"
            return Ended(ending=ending, note=_short(text), evidence=evidence)
        case "refusal":
            return Ended(ending="refused", note=_short(text) or "the model declined", evidence=evidence)
        case "max_turn_requests":
            return Ended(ending="budget", note="the agent's own limit of requests is reached", evidence=evidence)
        case "cancelled":
            return Ended(ending="stopped", note="the turn was cancelled", evidence=evidence)
        case _:
            return Ended(
                ending="crashed", note=f"the turn broke off ({stop_reason}): {_short(text)}", evidence=evidence
            )


def _by_words(text: str) -> Ending:
    for ending, words in WORDS:
        if re.search(words, text, re.IGNORECASE):
            return ending
    return "crashed"


def _short(text: str) -> str:
    return text if len(text) <= NOTE_CHARACTERS else f"... {text[-NOTE_CHARACTERS:]}"
