"""What in a C, C++ or CUDA source a kernel has hardly any business with. Reads tokens; preprocesses and runs nothing.

Comments and texts are left out, lines that end in a backslash are joined first, so that neither hides a name.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from toolkits.core.scan_names import CALLS, NAMES
from toolkits.core.scan_python import Seen

_TOKEN = re.compile(
    r"""
    (?P<skip> //[^\n]* | /\*.*?(?:\*/|\Z) | [^\S\n]+ )
  | (?P<newline> \n )
  | (?P<raw> (?:u8|[uUL])?R"(?P<fence>[^()\\\s]{0,16})\(.*?(?:\)(?P=fence)"|\Z) )
  | (?P<text> (?:u8|[uUL])?"(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])+' )
  | (?P<number> \.?\d(?:[eEpP][+-]|'?[\w.])* )
  | (?P<word> [^\W\d]\w* )
  | (?P<mark> \#\# | %:%: | :: | -> | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_DIGRAPHS = {"%:": "#", "%:%:": "##", "<:": "[", "<%": "{", "%>": "}"}
_BEFORE_A_CALL = {"return", "else", "do", "case", "co_return", "co_await", "throw"}
MAX_PARAMETERS = 400
"""Tokens between the parentheses of a function's declaration, at most."""
_MAPS = {"map", "unordered_map", "flat_map", "set", "unordered_set"}


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    line: int


def scan(text: str) -> list[Seen]:
    """Everything that is worth a look, in the order of the lines."""
    tokens = _tokens(text)
    found = {*_names(tokens), *_remembered(tokens), *_directives(text), *_pasted(tokens)}
    return sorted(found)


def _tokens(text: str) -> list[_Token]:
    """Tokens with the line on which each begins, without blanks, comments and line ends."""
    parts = re.split(r"(\\[ \t]*\r?\n|\n)", text)
    length, starts = 0, [0]
    for index, part in enumerate(parts):
        if part != "\n" and part.endswith("\n"):  # a backslash before it: the next line goes on here
            parts[index] = ""
        length += len(parts[index])
        if part.endswith("\n"):
            starts.append(length)
    joined = "".join(parts)
    return [
        _Token(str(match.lastgroup), _DIGRAPHS.get(match.group(), match.group()), bisect_right(starts, match.start()))
        for match in _TOKEN.finditer(joined)
        if match.lastgroup not in ("skip", "newline")
    ]


def _names(tokens: list[_Token]) -> Iterator[Seen]:
    own = _own_functions(tokens)
    for index, token in enumerate(tokens):
        if token.kind != "word" or token.text in own:
            continue
        if why := NAMES.get(token.text):
            yield token.line, f"{token.text}: {why}"
        elif (why := CALLS.get(token.text)) and _is_call(tokens, index):
            yield token.line, f"{token.text}(): {why}"
        elif (
            token.text in ("thread", "async") and _text(tokens, index - 1) == "::" and _text(tokens, index - 2) == "std"
        ):
            yield token.line, f"std::{token.text}: work in a thread may outlive the call"


def _own_functions(tokens: list[_Token]) -> set[str]:
    """Names that the source defines as functions: `void write(...) {`."""
    own: set[str] = set()
    for index, token in enumerate(tokens):
        before = tokens[index - 1] if index else None
        if token.kind != "word" or _text(tokens, index + 1) != "(" or before is None:
            continue
        declared = (before.kind == "word" and before.text not in _BEFORE_A_CALL) or before.text in ("*", "&", ">")
        if declared and _after_parentheses(tokens, index + 1) in ("{", "const", "noexcept"):
            own.add(token.text)
    return own


def _after_parentheses(tokens: list[_Token], index: int) -> str:
    depth = 0
    for at in range(index, min(index + MAX_PARAMETERS, len(tokens))):
        depth += {"(": 1, ")": -1}.get(tokens[at].text, 0)
        if depth == 0:
            return _text(tokens, at + 1)
    return ""


def _is_call(tokens: list[_Token], index: int) -> bool:
    """A call of a free function: no method, no declaration, nobody's namespace but the global one and std."""
    if _text(tokens, index + 1) != "(" or index == 0:
        return False
    before = tokens[index - 1]
    if before.text == "::":
        scope = tokens[index - 2] if index > 1 else None
        return scope is None or scope.kind != "word" or scope.text in ("std", *_BEFORE_A_CALL)
    return before.text not in (".", "->") and (before.kind != "word" or before.text in _BEFORE_A_CALL)


def _remembered(tokens: list[_Token]) -> Iterator[Seen]:
    """Addresses that are kept from one call to the next."""
    for index, token in enumerate(tokens):
        if token.text in _MAPS and _text(tokens, index + 1) == "<" and _pointer_key(tokens, index + 2):
            yield token.line, f"{token.text} keyed by an address: new content may stand at the same place"
        elif token.text in ("static", "thread_local") and _keeps_pointer(tokens, index + 1):
            yield token.line, f"{token.text} pointer to const: an address kept over calls, where new content may stand"


def _pointer_key(tokens: list[_Token], index: int) -> bool:
    depth = 0
    for token in tokens[index : index + 40]:
        if depth == 0 and token.text in (",", ">"):
            return False
        if token.text in ("*", "uintptr_t", "intptr_t"):
            return True
        depth += {"<": 1, "(": 1, ">": -1, ")": -1}.get(token.text, 0)
    return False


def _keeps_pointer(tokens: list[_Token], index: int) -> bool:
    """`static const float* last` and its like; no function and no table of constants."""
    words: list[str] = []
    for token in tokens[index : index + 40]:
        if token.text in (";", "=", "{", "(", "["):
            table = token.text in ("(", "[") or not _MAPS.isdisjoint(words)
            return not table and "*" in words and "const" in words[: words.index("*")]
        words.append(token.text)
    return False


def _directives(text: str) -> Iterator[Seen]:
    """Headers from outside of the solution and of the compiler's own paths."""
    for number, line in enumerate(text.split("\n"), start=1):
        named = re.match(r"\s*(?:#|%:|\?\?=)\s*(include|include_next|embed)\b\s*(.*)", line)
        if named and re.match(r"""["<]\s*(/|\.\.|~)|.*/\.\./""", named[2]):
            yield number, f"#{named[1]} of a file outside of the solution"
        elif named and (named[1] == "embed" or not re.match(r"""["<]""", named[2])):
            yield number, f"#{named[1]} of a name that is not in the text"


def _pasted(tokens: list[_Token]) -> Iterator[Seen]:
    for token in tokens:
        if token.text == "##":
            yield token.line, "token pasting: names that this scan cannot read"


def _text(tokens: list[_Token], index: int) -> str:
    return tokens[index].text if 0 <= index < len(tokens) else ""
