"""How figures read: the same few phrases in every report and on the terminal."""

from supervisor.schema import Evaluation
from toolkits.core.schema import Interval


def share(value: float | None) -> str:
    """Of what the device could do."""
    if value is None:
        return "-"
    return f"{value:.0%}" if value >= 0.1 else f"{value:.1%}"


def ratio(interval: Interval | None) -> str:
    return f"{interval.value:.3f}x [{interval.low:.3f}, {interval.high:.3f}]" if interval else "-"


def latency(us: float | None) -> str:
    return "-" if us is None else f"{us:,.1f}" if us < 1000 else f"{us:,.0f}"


def point(evaluation: Evaluation) -> str:
    """What was measured: the variant and its parameters."""
    values = " ".join(f"{name}={value}" for name, value in evaluation.parameters.items())
    return f"{evaluation.variant or evaluation.solution} {values}".strip()


def result(evaluation: Evaluation) -> str:
    if evaluation.timed:
        return f"{evaluation.verdict} {ratio(evaluation.speedup)}"
    status, cause = str(evaluation.status), evaluation.cause
    return status if cause in ("", status.lower()) else f"{status} {cause}"


def duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.1f} min"
