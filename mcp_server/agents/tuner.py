"""The agent that spends no tokens: it searches declared tunables and variants, through the lab's tools like any client.

This file is the adapter, and the program that `tuning` makes up: the search loads only in the role's process.
"""

import sys

from mcp_server.agents.agent import AgentEvent, RoleBrief
from mcp_server.agents.client import play, read_event
from mcp_server.charter import parse
from toolkits.core.errors import InvalidInput


class Tuner:
    name = "tuner"

    def command(self, brief: RoleBrief) -> list[str]:
        if not parse(brief.charter.read_text(encoding="utf-8")).task:
            raise InvalidInput("a tuner's charter names its `task` in the front matter")
        return [sys.executable, "-P", "-m", "mcp_server.agents.tuner"]

    def environment(self, brief: RoleBrief) -> dict[str, str]:
        return {}

    def event(self, line: str) -> AgentEvent | None:
        return read_event(line)


AGENT = Tuner()

if __name__ == "__main__":
    from mcp_server.agents.tuning import work

    sys.exit(play(work))
