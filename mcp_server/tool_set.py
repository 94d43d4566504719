"""What every set of tools has: a lab, and whom a call is from."""

from mcp.server.auth.middleware.auth_context import get_access_token

from mcp_server.callers import Caller
from mcp_server.lab import Lab
from toolkits.core.errors import LabError


class ToolSet:
    """A method a tool: its signature is the schema, its docstring the description."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab

    def _caller(self) -> Caller:
        """Whom the request's token names; without HTTP, whom the environment names."""
        access = get_access_token()
        if access is None:
            return self._lab.callers.local()
        if known := self._lab.callers.caller(access.token):
            return known
        raise LabError("your role has ended: the lab takes no more calls under its token")
