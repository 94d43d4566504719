"""Profiler reports that somebody hands in: where they lie, what became of them, which lessons fit. Knows no format."""

from pathlib import Path

from mcp_server import lessons
from mcp_server.workspace import Workspace
from toolkits.core.errors import InvalidInput
from toolkits.core.schema import Lesson, ProfileReport

OWN = "report.json"
"""What the lab keeps of every profile, beside the profiler's own output."""
MAX_LESSONS = 3


def report_path(workspace: Workspace, name: str, base: Path | None, *, anywhere: bool) -> Path:
    """A file, a folder that holds the lab's own report, or the id of a job that profiled."""
    path = ((base or Path.cwd()) / name).resolve() if anywhere else workspace.resolve(name, base)
    kept = path / OWN if path.is_dir() else workspace.root / "profiles" / name / OWN
    if path.is_file():
        return path
    if ("/" not in name or path.is_dir()) and kept.is_file():
        return kept
    raise InvalidInput(
        f"no report {name!r}: give the file of a profiler (.ncu-rep, CSV, JSON, .db, callgrind.out), or the id of a job"
        " that profiled; to profile a solution give its task as well"
    )


async def digested(path: Path, before: Path | None, folder: Path) -> ProfileReport:
    """The report in one vocabulary; with an earlier one, what changed since."""
    from toolkits.core import gpu_profile  # only now: the start of a server does not pay for it
    from toolkits.core.profilers import compare

    folder.mkdir(parents=True, exist_ok=True)
    report = await gpu_profile.read(path, folder)
    if before is None:
        return report
    old = await gpu_profile.read(before, folder)
    return report.model_copy(
        update={
            "changes": compare.changes(old, report),
            "verdict": compare.verdict(old, report),
            "notes": [*compare.notes(old, report), *report.notes],
        }
    )


def fitting_lessons(workspace: Workspace, report: ProfileReport) -> list[Lesson]:
    """By symptom; a report of a CPU profiler has its bottleneck only."""
    return lessons.matching(workspace, report.symptoms or [f"cpu_{report.bottleneck}"], MAX_LESSONS)
