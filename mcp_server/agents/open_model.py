"""Open models: any model behind an OpenAI-compatible endpoint (vLLM, Ollama, llama.cpp and others), in a loop of ours.

This file is the adapter. The loop itself is `open_model_program`, which loads pydantic-ai in the role's process only.
"""

import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from uuid import uuid4

from mcp_server.agents.agent import AgentCheck, RoleBrief
from mcp_server.agents.own_program import ProgramAttempt
from toolkits.core.errors import InvalidInput
from toolkits.core.schema import Record

ADDRESS, KEY, WINDOW = "OPENAI_BASE_URL", "OPENAI_API_KEY", "OPEN_MODEL_CONTEXT"
INSTALL = "pip install 'kernel-lab[agents]'"
SET_ADDRESS = f"export {ADDRESS}=http://127.0.0.1:8000/v1   # where vLLM, Ollama or llama.cpp serves"


class Job(Record):
    """What the program needs to know. Secrets are in its environment, not here."""

    model: str
    prompt: str
    session: str
    sessions: Path
    """Folder of the histories; this session's may be there already."""
    worktree: Path
    url: str
    """Address of the lab."""
    window: int = 0
    """Tokens that the model can take in; 0: asked of the endpoint, else found out."""


class OpenModel:
    name = "open_model"
    keys: tuple[str, ...] = (ADDRESS, KEY, WINDOW)

    def start(self, brief: RoleBrief) -> ProgramAttempt:
        if not brief.model:
            raise InvalidInput("open_model needs the model's name as its endpoint knows it: open_model:NAME")
        if not (brief.keys.get(ADDRESS) or brief.keys.get(KEY)):
            raise InvalidInput(f"open_model needs an endpoint: {SET_ADDRESS}; or {KEY} for OpenAI's own")
        if not _installed():
            raise InvalidInput(f"open_model needs its libraries: {INSTALL}")
        folder = brief.home / "open_model"
        folder.mkdir(parents=True, exist_ok=True)
        job = Job(
            model=brief.model,
            prompt=brief.prompt or brief.charter.read_text(encoding="utf-8"),
            session=brief.session or uuid4().hex,
            sessions=folder,
            worktree=brief.worktree,
            url=brief.url,
            window=window_of(brief.keys),
        )
        file = folder / "job.json"
        file.write_text(job.model_dump_json(indent=2), encoding="utf-8")
        environment = {name: brief.keys[name] for name in (ADDRESS, KEY) if brief.keys.get(name)}
        return ProgramAttempt("mcp_server.agents.open_model_program", file, environment)

    async def check(self, keys: dict[str, str]) -> AgentCheck:
        if not _installed():
            return AgentCheck(program="", remedy=INSTALL)
        login = f"endpoint from {ADDRESS}" if keys.get(ADDRESS) else f"key from {KEY}" if keys.get(KEY) else ""
        return AgentCheck(program=sys.executable, version=_version(), login=login, remedy="" if login else SET_ADDRESS)


def window_of(keys: dict[str, str]) -> int:
    """The context that the person says the model has; Ollama cuts longer ones in silence, so it must be told."""
    text = keys.get(WINDOW, "") or "0"
    if not text.isdecimal():
        raise InvalidInput(f"{WINDOW} is {text!r}: give the model's context in tokens, such as 32768")
    return int(text)


def _installed() -> bool:
    return bool(find_spec("pydantic_ai") and find_spec("openai"))


def _version() -> str:
    try:
        return f"pydantic-ai {version('pydantic-ai-slim')}"
    except PackageNotFoundError:
        return ""


AGENT = OpenModel()
