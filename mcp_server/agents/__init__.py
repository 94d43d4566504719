"""Adapters to agents: one file an agent, each ends in `AGENT = ...`."""
