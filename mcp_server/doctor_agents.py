"""Whether agents could play roles here: their program, its version, whether it looks logged in. Prints no secret."""

import asyncio
import os
import sys
from pathlib import Path

from mcp_server.agents.agent import AgentCheck, agents, get_agent
from mcp_server.keys import Secrets, for_agent
from toolkits.core.errors import LabError
from toolkits.core.protections import Check

AREA = "agents"


async def checks() -> list[Check]:
    """All at once: most of them start a program to ask for its version."""
    async with asyncio.TaskGroup() as tasks:
        started = [tasks.create_task(_checked(name)) for name in agents()]
    return [task.result() for task in started]


async def _checked(name: str) -> Check:
    """No agent is needed for the lab to work, so nothing is missing: what lacks is a note."""
    try:
        agent = get_agent(name)
        keys = for_agent(agent.keys, {}, os.environ)
        found = await agent.check(keys)
    except (ImportError, AttributeError, LabError) as error:
        return Check(area=AREA, name=name, state="note", seen=f"does not load: {error}", remedy="reinstall its package")
    secrets = Secrets(keys)
    state = "note" if found.remedy else "ok"
    return Check(
        area=AREA, name=name, state=state, seen=secrets.hidden(_seen(found)), remedy=secrets.hidden(found.remedy)
    )


def _seen(found: AgentCheck) -> str:
    if not found.program:
        return "not installed"
    login = f"logged in {found.login}" if found.login.startswith("by ") else found.login and f"login: {found.login}"
    parts = [found.version, login or ("not logged in" if found.remedy else ""), _place(found.program)]
    return ", ".join(part for part in parts if part)


def _place(program: str) -> str:
    home = str(Path.home())
    return "runs in this Python" if program == sys.executable else program.replace(home, "~", 1)
