"""The lab as an MCP server: which tools it has, and who may call them."""

from importlib.metadata import version

from mcp.server import MCPServer
from mcp.server.auth.provider import TokenVerifier
from mcp.server.auth.settings import AuthSettings

from mcp_server.guides import add_guides, prompt_text
from mcp_server.lab import Lab
from mcp_server.tooling import READ, START, WORK, tool
from mcp_server.tools_catalogue import CatalogueTools
from mcp_server.tools_measure import MeasuringTools
from mcp_server.tools_roles import RoleTools


def build_server(lab: Lab, verifier: TokenVerifier | None = None) -> MCPServer:
    """The lab as an MCP server; with a verifier every HTTP request needs a bearer token."""
    measuring, catalogue, roles = MeasuringTools(lab), CatalogueTools(lab), RoleTools(lab)
    server = MCPServer(
        "kernel-lab",
        title="kernel-lab",
        version=version("kernel-lab"),
        instructions=prompt_text("instructions"),
        tools=[
            tool(measuring.compile, WORK),
            tool(measuring.benchmark, WORK),
            tool(measuring.profile, WORK),
            tool(measuring.get_result, READ),
            tool(measuring.cancel, WORK),
            tool(catalogue.devices, READ),
            tool(catalogue.list_tasks, READ),
            tool(catalogue.describe_task, READ),
            tool(catalogue.read_lessons, READ),
            tool(catalogue.add_lesson, START),
            tool(catalogue.read_history, READ),
            tool(catalogue.write_history, START),
            tool(catalogue.plot, READ),
            tool(catalogue.open_run, WORK),
            tool(roles.spawn_role, WORK),
            tool(roles.wait_role, READ),
            tool(roles.stop_role, WORK),
        ],
        token_verifier=verifier,
        auth=_bearer() if verifier else None,
        log_level="WARNING",
    )
    add_guides(server, lab)
    return server


def _bearer() -> AuthSettings:
    """Tokens are minted by the lab itself, so there is no authorization server to point at."""
    return AuthSettings.model_validate(
        {"issuer_url": "http://127.0.0.1/", "resource_server_url": None, "validate_token_resource": False}
    )
