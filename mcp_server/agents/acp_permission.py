"""What an agent may do that asks for permission: the lab's tools and the files of its worktree. Pure."""

import re
from pathlib import Path
from typing import cast

from acp.schema import FileEditToolCallContent, PermissionOption, ToolCallUpdate

from mcp_server.agents.worktree_files import WorktreeFiles
from toolkits.core.errors import LabError

FILES = {"read", "edit", "delete", "move", "search"}
_LAB = re.compile(r"(^|\W|_)lab(__|_|\.|/|:\s?)\w+")
"""A tool of the server `lab`, in the forms that clients give such names: lab_x, mcp__lab__x, mcp.lab.x, lab/x."""
_PATHS = ("path", "filePath", "filepath", "file_path", "abs_path")


def allowed(call: ToolCallUpdate, files: WorktreeFiles) -> bool:
    if call.kind in FILES:
        paths = _paths(call)
        return all(_inside(path, files) for path in paths) and bool(paths or call.kind == "search")
    return call.kind == "think" or (call.kind in ("other", None) and is_lab_tool(call.title or ""))


def is_lab_tool(title: str) -> bool:
    return bool(_LAB.search(title))


def choice(options: list[PermissionOption], allow: bool) -> str:
    """The id of the option that says so, once rather than always; empty: there is none."""
    wanted = ("allow_once", "allow_always") if allow else ("reject_once", "reject_always")
    found = [option.option_id for kind in wanted for option in options if option.kind == kind]
    return found[0] if found else ""


def _paths(call: ToolCallUpdate) -> list[str]:
    """Every path that the call names, wherever it does."""
    located = [location.path for location in call.locations or []]
    changed = [part.path for part in call.content or [] if isinstance(part, FileEditToolCallContent)]
    raw: object = call.raw_input
    given = cast("dict[str, object]", raw) if isinstance(raw, dict) else {}
    named = [str(given[name]) for name in _PATHS if given.get(name)]
    return [*located, *changed, *named]


def _inside(path: str, files: WorktreeFiles) -> bool:
    try:
        files.inside(str(Path(path)))
    except LabError:
        return False
    return True
