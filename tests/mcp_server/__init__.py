"""The lab as its users meet it: over MCP, over HTTP, at the terminal."""
