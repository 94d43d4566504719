"""What a check of a GPU machine found, as Markdown and JSON. Knows no device."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

DRY = (
    "**Dry run: this machine has no GPU.** Everything below ran on a stand-in for a driver, whose memory is the host's"
    " and whose clock is the host's. **No figure in this report is a GPU's.**"
)


@dataclass
class Section:
    """One step of the check."""

    title: str
    outcome: str = "ok"
    """ok, failed or skipped."""
    why: str = ""
    seconds: float = 0.0
    columns: Sequence[str] = ()
    rows: list[list[str]] = field(default_factory=list[list[str]])
    notes: list[str] = field(default_factory=list[str])


def written(sections: list[Section], folder: Path, *, device: str, dry: bool) -> Path:
    """Both files; returns the Markdown one."""
    folder.mkdir(parents=True, exist_ok=True)
    about = {"device": device, "dry_run": dry, "figures_are_a_gpus": not dry}
    text = json.dumps(about | {"sections": [asdict(section) for section in sections]}, indent=2)
    (folder / "gpu-check.json").write_text(text + "\n", encoding="utf-8")
    lines = ["# gpu-check", "", f"Device: {device}", ""] + ([DRY, ""] if dry else [])
    for section in sections:
        lines += _section(section)
    path = folder / "gpu-check.md"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def _section(section: Section) -> list[str]:
    why = f": {section.why}" if section.why else ""
    lines = [f"## {section.title}", "", f"{section.outcome} in {section.seconds:.1f} s{why}", ""]
    if section.rows:
        lines += [_row(section.columns), _row(["---"] * len(section.columns)), *map(_row, section.rows), ""]
    return lines + [line for note in section.notes for line in (f"- {note}",)] + ([""] if section.notes else [])


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
