"""How near a candidate came to the tolerance of each check, alone and beside the baseline. Decides nothing."""

import math
import sys

from toolkits.core.judge.compare import Finding
from toolkits.core.schema import CheckError


class WorstErrors:
    """The largest error of each check so far, of the candidate alone and beside the baseline on the same content."""

    def __init__(self) -> None:
        self._worst: list[CheckError] = []

    def add(self, found: list[Finding], label: str, baseline: list[Finding] | None = None) -> None:
        """Note one round; `baseline` holds what the same checks saw of the baseline's outputs on the same case."""
        beside = baseline or [None] * len(found)
        new = [_noted(finding, label, other) for finding, other in zip(found, beside, strict=True)]
        self._worst = [_worse(*both) for both in zip(self._worst, new, strict=True)] if self._worst else new

    def records(self) -> list[CheckError]:
        """One a check, in the task's order."""
        return list(self._worst)


def _noted(finding: Finding, label: str, baseline: Finding | None) -> CheckError:
    return CheckError(
        output=finding.output,
        rule=finding.rule,
        error=_finite(finding.error),
        tolerance=finding.tolerance,
        round=label,
        beside_baseline=_finite(finding.error) if baseline else None,
        baseline_error=_finite(baseline.error) if baseline else None,
        beside_tolerance=finding.tolerance if baseline else None,
    )


def _finite(error: float) -> float:
    """JSON knows no infinity."""
    return error if math.isfinite(error) else sys.float_info.max


def _worse(old: CheckError, new: CheckError) -> CheckError:
    """The round that came nearest to its tolerance, and the pair in which the candidate was worst."""
    nearer = new if _share(new) > _share(old) else old
    pairs = [record for record in (old, new) if record.beside_baseline is not None]
    pair = max(pairs, key=lambda record: record.beside_baseline or 0.0, default=old)
    names = ("beside_baseline", "baseline_error", "beside_tolerance")
    return nearer.model_copy(update={name: getattr(pair, name) for name in names})


def _share(record: CheckError) -> float:
    """Of what is allowed; of a check that allows nothing, the error itself."""
    return record.error / record.tolerance if record.tolerance else record.error
