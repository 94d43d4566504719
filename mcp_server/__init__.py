"""The lab as MCP tools and as a command line, over one set of functions."""
