"""What a role that a model plays is told: its charter in a frame, that it goes on, or what is not read yet."""

from collections.abc import Sequence
from pathlib import Path
from string import Template

from mcp_server.budgets import Caps
from mcp_server.charter import Charter
from mcp_server.worktrees import SOLUTION_FOLDER

_FOLDER = Path(__file__).parent / "prompts"


def beginning(charter: Charter, name: str, caps: Caps, start: str) -> str:
    """The first prompt of a session."""
    begin = f"The task's start solution lies in `{SOLUTION_FOLDER}/` ({start}): edit it, or copy it." if start else ""
    read = f"- Read before you end: {', '.join(charter.read)}. The lab sees what you open.\n" if charter.read else ""
    return _filled(
        "role",
        name=name,
        run=charter.run,
        task=charter.task,
        start=begin,
        limits=_limits(caps),
        read=read,
        charter=charter.prose.strip(),
    )


def going_on(why: str) -> str:
    """To a session that was interrupted."""
    return _filled("role_again", why=why)


def unread(missing: Sequence[str]) -> str:
    """To a session that ended without having read its charter's list."""
    return _filled("role_unread", missing=", ".join(missing))


def _limits(caps: Caps) -> str:
    given = [
        f"{caps.evaluations} evaluations" if caps.evaluations else "",
        f"{caps.minutes:g} minutes" if caps.minutes else "",
        f"{caps.usd:.2f} USD" if caps.usd else "",
        f"{caps.tokens} tokens" if caps.tokens else "",
    ]
    told = ", ".join(one for one in given if one)
    return f"- You have {told}; the lab ends you when one of them is used up.\n" if told else ""


def _filled(prompt: str, **values: str) -> str:
    return Template((_FOLDER / f"{prompt}.md").read_text(encoding="utf-8")).substitute(values)
