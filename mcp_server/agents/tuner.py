"""The agent that spends no tokens: it searches declared tunables and variants, through the lab's tools like any client.

This file is the adapter, and the program that `tuning` makes up: the search loads only in the role's process.
"""

import sys

from mcp_server.agents.agent import AgentCheck, RoleBrief
from mcp_server.agents.client import Program, play
from mcp_server.charter import parse
from toolkits.core.errors import InvalidInput


class Tuner:
    name = "tuner"
    keys: tuple[str, ...] = ()

    def start(self, brief: RoleBrief) -> Program:
        if not parse(brief.charter.read_text(encoding="utf-8")).task:
            raise InvalidInput("a tuner's charter names its `task` in the front matter")
        return Program("mcp_server.agents.tuner")

    async def check(self, keys: dict[str, str]) -> AgentCheck:
        return AgentCheck(program=sys.executable)


AGENT = Tuner()

if __name__ == "__main__":
    from mcp_server.agents.tuning import work

    sys.exit(play(work))
