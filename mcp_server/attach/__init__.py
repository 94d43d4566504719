"""Putting the lab into a coding agent's own configuration, and taking it out again without a trace."""
