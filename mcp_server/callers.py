"""Who asks: a role of a run, the administrator of a run, or a person. A token decides, never what the caller says."""

import hmac
from dataclasses import dataclass
from pathlib import Path

from mcp_server.ledger import Ledger, RoleRow
from mcp_server.workspace import worktree_of
from toolkits.core.errors import LabError


@dataclass(frozen=True)
class Caller:
    """Everything that a caller does is credited to `run` and `role`."""

    run: str = ""
    """Empty: outside any run."""
    role: RoleRow | None = None
    admin: bool = False

    @property
    def role_id(self) -> str:
        return self.role.id if self.role else ""

    @property
    def worktree(self) -> Path | None:
        """Where the relative paths of a role start; None: those of all others start at the working directory."""
        return worktree_of(self.role.folder) if self.role else None

    def require_admin(self, what: str) -> None:
        if not self.admin:
            raise LabError(f"only the administrator of a run may {what}: connect with the server's admin token")


class Callers:
    """Turns a token into a caller. The administrator acts for the run that was opened last."""

    def __init__(self, ledger: Ledger, admin_token: str = "", local_token: str = "") -> None:
        self.ledger = ledger
        self._admin_token = admin_token
        self._local_token = local_token
        self.admin_run = ""
        self.tokens = [token for token in (admin_token, local_token) if token]
        """What must not be written anywhere."""

    def local(self) -> Caller:
        """Who talks over stdio or at the keyboard: whom the environment's token names, else a person."""
        if not self._local_token:
            return Caller()
        if caller := self.caller(self._local_token):
            return caller
        raise LabError("KERNEL_LAB_TOKEN names no running role of this workspace: unset it, or correct --root")

    def caller(self, token: str) -> Caller | None:
        """None: the token is nobody's, or of a role that has ended."""
        if self._admin_token and hmac.compare_digest(token.encode(), self._admin_token.encode()):
            return Caller(run=self.admin_run, admin=True)
        role = self.ledger.role_by_token(token)
        return Caller(run=role.run, role=role) if role and role.state == "running" else None
