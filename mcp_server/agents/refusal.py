"""Whether the words that a model ended with decline the task. Pure; knows no agent."""

import re

LONGEST = 600
"""A longer text explains work, whatever words are in it."""
_DECLINES = re.compile(
    r"\bI\s*(can't|cannot|can not|won't|will not|(must|have to) decline|('m| am) (unable|not able|not going) to)\b",
    re.IGNORECASE,
)


def declines(text: str) -> bool:
    """Ask this only of one that has not called the lab: who has worked may well say what it cannot do."""
    return len(text) <= LONGEST and bool(_DECLINES.search(text.replace("\u2019", "'")))
