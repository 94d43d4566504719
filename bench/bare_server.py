"""The peer of the start-up measurement: an MCP SDK server with one tool and nothing else."""

from mcp.server import MCPServer

server = MCPServer("bare", log_level="WARNING")


@server.tool()
def echo(text: str) -> str:
    """Say it again."""
    return text


server.run()
