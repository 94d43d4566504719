"""Child process that reads a .ncu-rep through NVIDIA's ncu-report: native code stays out of the lab's own processes.

    python -P -m toolkits.core.profilers.ncu_rep REPORT ANSWER

Writes {"launches": [...]}, or {"error": "..."}. The parent turns it into launches with `launches`.
"""

import importlib
import json
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from toolkits.core.errors import InvalidInput
from toolkits.core.profilers.ncu_metrics import Launch, Rule, plain
from toolkits.core.profilers.quantities import based

MAGIC = b"NVR\0"
PACKAGE = "ncu-report"
MISSING = (
    "a .ncu-rep is read through NVIDIA's package ncu-report, which is not installed here: `pip install"
    " kernel-lab[ncu]` or `pip install ncu-report`, or where ncu is, `ncu --import FILE --csv --page raw` and give that"
)
CUT = (
    "the .ncu-rep is cut or damaged: {} of its {} launches can be read. Copy it again, or record it anew; when it is"
    " whole, it is of a newer Nsight Compute than ncu-report {}: `pip install -U ncu-report`"
)
EMPTY = (
    "no kernel is in the .ncu-rep: it is cut or damaged, of a newer Nsight Compute than ncu-report {} (`pip install -U"
    " ncu-report`), or nothing was profiled (check --kernel-name, and that --nvtx-include ends with a slash)"
)


def installed() -> str:
    """The version of ncu-report, empty where it is not installed; nothing of it is imported."""
    try:
        return version(PACKAGE)
    except PackageNotFoundError:
        return ""


def launches(answer: dict[str, Any]) -> list[Launch]:
    """What the child wrote, or its error."""
    if "error" in answer:
        raise InvalidInput(answer["error"])
    return [_launch(held) for held in answer["launches"]]


def _launch(held: dict[str, Any]) -> Launch:
    numbers: dict[str, tuple[float, str]] = {}
    words: dict[str, str] = {}
    for name, (value, unit) in held["metrics"].items():
        if isinstance(value, str):
            words[name] = value
        else:
            numbers[name] = based(float(value), unit)
    capability = [numbers.get(f"device__attribute_compute_capability_{part}") for part in ("major", "minor")]
    return Launch(
        name=held["name"],
        metrics=numbers,
        grid=_dimensions(numbers, "grid"),
        block=_dimensions(numbers, "block"),
        rules=tuple(Rule(name, plain(text), *rest) for name, text, *rest in held["rules"]),
        device=words.get("device__attribute_display_name", ""),
        architecture="sm_" + "".join(f"{part[0]:.0f}" for part in capability if part) if all(capability) else "",
    )


def _dimensions(numbers: dict[str, tuple[float, str]], what: str) -> tuple[int, int, int] | None:
    x, y, z = (int(numbers.get(f"launch__{what}_dim_{axis}", (0.0, ""))[0]) for axis in "xyz")
    return (x, y, z) if x and y and z else None


def _read(path: str) -> dict[str, Any]:
    """Runs in the child only: the package has no types, and may end the process on a damaged file."""
    module: Any = importlib.import_module("ncu_report")
    context = module.load_report(path)
    ranges = [context.range_by_idx(index) for index in range(context.num_ranges())]
    actions = [found.action_by_idx(index) for found in ranges for index in range(found.num_actions())]
    if not actions:
        return {"error": EMPTY.format(installed())}
    whole = [action for action in actions if action.name() and len(list(action.metric_names()))]
    if len(whole) < len(actions):
        return {"error": CUT.format(len(whole), len(actions), installed())}
    return {"launches": [_action(action, module) for action in whole]}


def _action(action: Any, module: Any) -> dict[str, Any]:
    names = [str(name) for name in action.metric_names()]
    metrics = {name: action.metric_by_name(name) for name in names}
    return {
        "name": str(action.name(action.NameBase_DEMANGLED)) or str(action.name()),
        "metrics": {
            name: (value, str(metric.unit() or ""))
            for name, metric in metrics.items()
            if isinstance(value := metric.value(), (int, float, str))
        },
        "rules": [_rule(rule, module) for rule in action.rule_results_as_dicts()],
    }


def _rule(rule: dict[str, Any], module: Any) -> tuple[str, str, bool, float | None, bool]:
    message: dict[str, Any] = rule.get("rule_message") or {}
    gain: dict[str, Any] = rule.get("speedup_estimation") or {}
    advice = message.get("type") in (module.MsgType_OPTIMIZATION, module.MsgType_WARNING)
    local = gain.get("type") == module.SpeedupType_LOCAL
    return str(rule["rule_identifier"]), str(message.get("message", "")), advice, gain.get("speedup"), local


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(_read(sys.argv[1])), encoding="utf-8")
