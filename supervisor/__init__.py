"""The supervisor: an MCP client that runs teams on one kernel and rebuilds them when they stop making progress."""
