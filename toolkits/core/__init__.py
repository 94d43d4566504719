"""What every toolkit shares. Knows nothing of MCP, of SQL or of agents."""
