"""A CUDA or HIP source as tokens with their places. Comments, texts and blanks are no tokens; knows no compiler."""

import re
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
    (?P<skip> //(?:[^\n\\]|\\.)* | /\*.*?(?:\*/|\Z) | \\\r?\n | \s+ )
  | (?P<raw> (?:u8|[uUL])?R"(?P<fence>[^()\\\s]{0,16})\(.*?(?:\)(?P=fence)"|\Z) )
  | (?P<text> (?:u8|[uUL])?"(?:\\.|[^"\\\n])*" | (?:u8|[uUL])?'(?:\\.|[^'\\\n])+' )
  | (?P<number> \.?\d(?:[eEpP][+-]|'?[\w.])* )
  | (?P<word> [^\W\d]\w* )
  | (?P<mark> <<<|>>>|<<=|>>=|<<|>>|::|->|&&|\|\||. )
    """,
    re.VERBOSE | re.DOTALL,
)
_CLOSES = {"(": ")", "[": "]", "{": "}"}
_OPENS = {closing: opening for opening, closing in _CLOSES.items()}
_ANGLES = {"<": 1, "<<": 2, ">": -1, ">>": -2, ">>>": -3}


@dataclass(frozen=True)
class Token:
    kind: str
    text: str
    start: int
    end: int


def tokens(text: str) -> list[Token]:
    """Words, numbers, marks and texts, in order; a text or character is one token without a meaning."""
    return [
        Token("text" if match["raw"] else str(match.lastgroup), match.group(), match.start(), match.end())
        for match in _TOKEN.finditer(text)
        if match["skip"] is None
    ]


def line_of(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def closing(found: list[Token], index: int) -> int:
    """The index of the bracket that closes the one at `index`; the last index if none does."""
    depth = 0
    for at in range(index, len(found)):
        if found[at].text in _CLOSES:
            depth += 1
        elif found[at].text in _OPENS:
            depth -= 1
            if depth == 0:
                return at
    return len(found) - 1


def opening(found: list[Token], index: int) -> int:
    """The index of the bracket that opens the one at `index`; 0 if none does."""
    depth = 0
    for at in range(index, -1, -1):
        if found[at].text in _OPENS:
            depth += 1
        elif found[at].text in _CLOSES:
            depth -= 1
            if depth == 0:
                return at
    return 0


def angle_opening(found: list[Token], index: int) -> int:
    """The index of the `<` of the template arguments that end at `index`."""
    depth, at = 0, index
    while at >= 0:
        text = found[at].text
        if text in _OPENS:
            at = opening(found, at)
        else:
            depth += _ANGLES.get(text, 0)
            if depth >= 0 and text in _ANGLES:
                return at
        at -= 1
    return 0
