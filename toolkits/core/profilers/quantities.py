"""Numbers as profilers print them, in any locale, and their units. Pure; knows no metric."""

import math
import re
from collections.abc import Iterable

_SPACES = str.maketrans("", "", " \u00a0\u202f\u2009'\u2019")
_EXPONENT = r"(?:[eE][-+]?\d+)?"
_PLAIN = {
    # A number that is grouped does not begin with 0, so `0,123` is a decimal comma.
    False: re.compile(rf"[-+]?(?:\d+|[1-9]\d{{0,2}}(?:,\d{{3}})+)(?:\.\d+)?{_EXPONENT}"),
    True: re.compile(rf"[-+]?(?:\d+|[1-9]\d{{0,2}}(?:\.\d{{3}})+)(?:,\d+)?{_EXPONENT}"),
}
"""By whether the decimal mark is a comma."""
_PREFIXES = {"": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3, "K": 1e3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BASES = {
    "byte": "byte",
    "B": "byte",
    "s": "second",
    "second": "second",
    "hz": "hz",
    "Hz": "hz",
    "cycle": "cycle",
    "inst": "inst",
    "sector": "sector",
    "thread": "thread",
    "warp": "warp",
    "block": "block",
    "register": "register",
    "request": "request",
}
_UNIT = re.compile(rf"([numKkMGTP]?)({'|'.join(sorted(_BASES, key=len, reverse=True))})s?")


def decimal_comma(texts: Iterable[str]) -> bool | None:
    """Whether a column of numbers is written `1.234,5`; None where its numbers contradict each other."""
    votes = {vote for text in texts if (vote := _vote(text)) is not None}
    if len(votes) == 2:
        return None
    return votes == {True}


def _vote(text: str) -> bool | None:
    """What one number says: True is decimal comma, None is either."""
    text = text.strip().translate(_SPACES)
    if not re.fullmatch(r"[-+]?[\d.,]*\d", text):
        return None
    could = [comma for comma in (False, True) if _PLAIN[comma].fullmatch(text)]
    return could[0] if len(could) == 1 else None


def number(text: str, comma: bool) -> float | None:
    """The value of `4,963.19` or, with a decimal comma, `4.963,19`; None for `n/a`, words and lists."""
    plain = text.strip().translate(_SPACES)
    if not _PLAIN[comma].fullmatch(plain):
        return None
    value = float(plain.replace(".", "").replace(",", ".") if comma else plain.replace(",", ""))
    return value if math.isfinite(value) else None


def based(value: float, unit: str) -> tuple[float, str]:
    """The value in base units: bytes, seconds, hertz, and shares of one for per cent."""
    if unit.strip() == "%":
        return value / 100, "share"
    above, _, below = unit.strip().partition("/")
    factor, name = _one(above)
    if not below:
        return value * factor, name
    divisor, base = _one(below)
    per = f"{name}/{base}"
    # Old versions give clocks as cycles a nanosecond.
    return value * factor / divisor, "hz" if per == "cycle/second" else per


def _one(unit: str) -> tuple[float, str]:
    if unit in {"nsecond", "usecond", "msecond"}:
        return _PREFIXES[unit[0]], "second"
    match = _UNIT.fullmatch(unit)
    return (_PREFIXES[match[1]], _BASES[match[2]]) if match else (1.0, unit)
