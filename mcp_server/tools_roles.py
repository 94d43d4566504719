"""The tools that start and end roles. Each is a signature, a docstring and one call."""

from typing import Annotated

from mcp.types import CallToolResult
from pydantic import Field

from mcp_server.budgets import Caps
from mcp_server.schema import RoleAnswer
from mcp_server.tool_arguments import WaitS
from mcp_server.tool_set import ToolSet
from mcp_server.tooling import shown


class RoleTools(ToolSet):
    """Agents under a charter."""

    async def spawn_role(
        self,
        name: Annotated[str, Field(description="Name of the role in its team; a running one of that name is joined.")],
        charter: Annotated[
            str, Field(description="Markdown with YAML front matter (task, settings): what the role does.")
        ],
        agent: Annotated[
            str,
            Field(
                description="What plays the role: tuner, replay, or an installed agent, as `name` or `name:model`; "
                "several by commas, in order of preference."
            ),
        ] = "tuner",
        team: Annotated[int, Field(ge=1)] = 1,
        evaluations: Annotated[int, Field(ge=0, description="Cap on its benchmarks; 0: none.")] = 0,
        minutes: Annotated[float, Field(ge=0, description="Cap on its wall time; 0: none.")] = 0,
        usd: Annotated[float, Field(ge=0, description="Cap on its spend; 0: none.")] = 0,
        tokens: Annotated[int, Field(ge=0, description="Cap on its tokens of all kinds; 0: none.")] = 0,
    ) -> Annotated[CallToolResult, RoleAnswer]:
        """Start an agent under a charter, with its own folder, token and budget. Returns at once: use wait_role.

        A role may start helpers in the same way, within its own budget; helpers may not."""
        caps = Caps(usd=usd, tokens=tokens, minutes=minutes, evaluations=evaluations)
        return shown(await self._lab.spawn_role(self._caller(), name, charter, agent, team, caps))

    async def wait_role(
        self, role: Annotated[str, Field(description="Id that spawn_role gave.")], wait_s: WaitS = 45
    ) -> Annotated[CallToolResult, RoleAnswer]:
        """Wait until a role ends, at most wait_s: its state, evaluations, best verified speedup and spend."""
        return shown(await self._lab.wait_role(role, wait_s))

    async def stop_role(
        self,
        role: Annotated[str, Field(description="Id that spawn_role gave.")],
    ) -> Annotated[CallToolResult, RoleAnswer]:
        """End a role and every process of it; what it recorded stays."""
        return shown(await self._lab.stop_role(self._caller(), role))
