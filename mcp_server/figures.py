"""Numbers as callers are shown them: four significant digits, since more is noise and is paid for in tokens."""

from toolkits.core.schema import Interval


def ratio(interval: Interval) -> str:
    return f"{interval.value:.3g}x ({interval.low:.3g} to {interval.high:.3g})"


def short(number: float | None) -> float | None:
    """A number that may not have been measured."""
    return None if number is None else float(f"{number:.4g}")


def rounded(interval: Interval | None) -> Interval | None:
    if interval is None:
        return None
    return Interval(
        value=float(f"{interval.value:.4g}"), low=float(f"{interval.low:.4g}"), high=float(f"{interval.high:.4g}")
    )
