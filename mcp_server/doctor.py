"""Whether all that the lab needs works on this machine and in this workspace. Shows nothing, and repairs nothing."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from mcp_server import doctor_agents
from mcp_server.workspace import Workspace
from toolkits.core import checkup, checkup_gpu, protections
from toolkits.core.errors import LabError
from toolkits.core.protections import Check
from toolkits.core.schema import Record

LEAST_FREE_BYTES = 2_000_000_000
ANOTHER_ROOT = "name another root by --root or KERNEL_LAB_ROOT"


class DoctorAnswer(Record):
    """Every check, and whether nothing that is needed is missing."""

    ok: bool
    checks: list[Check]


async def examine(root: Path) -> DoctorAnswer:
    """Try everything; takes some seconds, most of them for torch."""
    found = [
        *await protections.checks(),
        *await checkup.building(),
        *await checkup.measuring(),
        *await checkup_gpu.checks(),
        *_workspace(root),
        *await doctor_agents.checks(),
    ]
    return DoctorAnswer(ok=not any(check.state == "missing" for check in found), checks=found)


def _workspace(root: Path) -> list[Check]:
    """Written to as the lab would; what a missing root lacks its cache lacks too."""
    try:
        workspace = Workspace(root)
        places = [("root", workspace.root, _write(lambda: workspace.builds.parent))]
        places.append(("build cache", workspace.builds, _write(lambda: workspace.builds)))
    except LabError as error:
        return [Check(area="workspace", name="root", state="missing", seen=str(root), remedy=str(error))]
    return [*(_place(*place) for place in places), _disk(workspace.root)]


def _write(folder: Callable[[], Path]) -> str:
    """Why no file can be written there; empty when one was."""
    try:
        with tempfile.NamedTemporaryFile(dir=folder(), prefix=".probe-") as file:
            file.write(b"0" * 4096)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def _place(name: str, folder: Path, refusal: str) -> Check:
    if refusal:
        return Check(area="workspace", name=name, state="missing", seen=f"{folder}: {refusal}", remedy=ANOTHER_ROOT)
    builds = sum(1 for path in folder.iterdir() if path.is_dir())
    held = f", {builds} builds" if name == "build cache" else ""
    return Check(area="workspace", name=name, state="ok", seen=f"{folder} is writable{held}")


def _disk(root: Path) -> Check:
    free = shutil.disk_usage(root).free
    short = free < LEAST_FREE_BYTES
    return Check(
        area="workspace",
        name="free disk",
        state="missing" if short else "ok",
        seen=f"{free / 1e9:.1f} GB",
        remedy=f"make room for {LEAST_FREE_BYTES / 1e9:.0f} GB, or {ANOTHER_ROOT}" if short else "",
    )
