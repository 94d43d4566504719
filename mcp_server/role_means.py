"""What the roles of a server have in common, and what each gets: its environment and its files. Starts nothing."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from mcp_server.agents.agent import RoleBrief
from mcp_server.endings import Patience
from mcp_server.keys import Secrets
from mcp_server.ledger import Ledger
from mcp_server.workspace import Workspace
from toolkits.core.schema import Json


@dataclass(frozen=True)
class Connection:
    """How a role reaches the lab."""

    url: str
    root: Path


@dataclass(frozen=True)
class Means:
    """What all roles of a server share."""

    workspace: Workspace
    ledger: Ledger
    keys: dict[str, str] = field(default_factory=dict[str, str])
    """Taken out of the server's environment."""
    secrets: Secrets = field(default_factory=Secrets)
    patience: Patience = field(default_factory=Patience)


def environment_of(brief: RoleBrief) -> dict[str, str]:
    """Built from nothing: what this server's environment holds is none of a role's business."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(brief.home),
        "LANG": "C.UTF-8",
        "KERNEL_LAB_URL": brief.url,
        "KERNEL_LAB_ROOT": str(brief.root),
        "KERNEL_LAB_TOKEN": brief.token,
        "KERNEL_LAB_ROLE_DIR": str(brief.folder),
    }


def written(folder: Path, name: str, body: Json) -> None:
    """A JSON file of the role's folder."""
    (folder / name).write_text(f"{json.dumps(body, indent=2)}\n", encoding="utf-8")
