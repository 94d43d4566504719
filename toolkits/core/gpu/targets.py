"""What the builds for several targets say, as one list. A message on one target ends in ` [TARGET]`."""

import re
from collections.abc import Sequence

from toolkits.core.schema import Diagnostic

_ORDER = {"error": 0, "warning": 1, "note": 2}
_TARGET = re.compile(r" \[((?:sm|gfx)\w+)\]$")


def merged(found: Sequence[Diagnostic], targets: Sequence[str], *, any_target: bool) -> list[Diagnostic]:
    """One message where every target says the same; errors first.

    With `any_target`, one target that builds is enough, and what the others say is a warning.
    """
    named = [(one, _TARGET.search(one.message)) for one in found]
    bad = {match[1] if match else "" for one, match in named if one.severity == "error"}
    forgiven = any_target and "" not in bad and len(bad) < len(targets)
    bare = [one.message[: match.start()] if match else one.message for one, match in named]
    kept: dict[Diagnostic, None] = {}
    for (one, _), short in zip(named, bare, strict=True):
        message = short if bare.count(short) >= len(targets) else one.message
        severity = "warning" if forgiven and one.severity == "error" else one.severity
        kept[one.model_copy(update={"message": message, "severity": severity})] = None
    return sorted(kept, key=lambda one: _ORDER[one.severity])
