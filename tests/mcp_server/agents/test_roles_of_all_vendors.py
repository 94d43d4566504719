"""Every real vendor as a role of the lab: caps over all of them, silence, crash loops, and no secret in any file."""

import json
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp_server.agents.agent import Usage
from mcp_server.ledger import Ledger
from mcp_server.prices import Prices
from tests.agent_programs import NODE, claude, codex, opencode
from tests.mcp_server.agents.direct import TOKEN, served
from tests.mcp_server.agents.role_scene import DOOMED, Replies, Scene, scene, until
from tests.mcp_server.conftest import write_task
from tests.scripted_model import Call, ScriptedModel, Step, Usage4

pytestmark = pytest.mark.slow

SPENDERS = {
    "claude_code": "claude-sonnet-4-5",
    "codex": "gpt-5.1",
    "open_model": "gpt-4.1",
    "opencode": "local/gemini-2.5-pro",
}
CAPPED = {
    "claude_code": "claude-haiku-4-5",
    "codex": "gpt-5-mini",
    "open_model": "deepseek-chat",
    "opencode": "local/gemini-2.5-flash",
}
SILENT = {name: "local/silent-1" if name == "opencode" else "silent-1" for name in SPENDERS}
TOKENS = {
    "claude-sonnet-4-5": Usage4(3_000, 20_000, 1_000, 1_000),
    "gpt-5.1": Usage4(10_000, 16_000, 0, 800),
    "gpt-4.1": Usage4(5_000, 10_000, 0, 800),
    "gemini-2.5-pro": Usage4(8_000, 16_000, 0, 800),
}
"""Of every reply: two or three cents' worth, and less than the reserve for one reply of each."""
COSTLY = Usage4(40_000, 20_000, 0, 2_000)
CAP_USD = 0.01
KEYS = {"ANTHROPIC_API_KEY": "sk-ant-dummy-0123456789", "OPENAI_API_KEY": "sk-dummy-9876543210"}
RUN_USD, RESERVE = 1.0, 0.1
QUIET = "---\nquiet_minutes: 0.3\n---\nMake it fast."


def script() -> dict[str, list[Step]]:
    spending = {model: [Step(calls=[Call("list_tasks")], usage=usage)] for model, usage in TOKENS.items()}
    once = Step(calls=[Call("list_tasks")], usage=COSTLY)
    capped = {_bare(model): [once, Step(hang=True)] for model in CAPPED.values()}
    return spending | capped | {"silent": [Step(hang=True)]}


@dataclass
class Played:
    """What came of all roles, after the server is gone."""

    root: Path
    roles: dict[tuple[str, str], dict[str, Any]]
    """(What happened, vendor) -> the last answer about the role."""
    late: dict[str, Any]
    """About a role that began when the run had spent what it may."""
    model: ScriptedModel
    tokens: set[str]

    def asked(self, model: str) -> int:
        return sum(request.model == _bare(model) for request in self.model.turns)

    def cost(self, model: str, tokens: Usage4) -> float:
        """USD of one such reply."""
        usage = Usage(
            model=_bare(model),
            input_tokens=tokens.input,
            cache_read_tokens=tokens.cache_read,
            cache_write_tokens=tokens.cache_write,
            output_tokens=tokens.output,
        )
        usd = Prices(self.root).usd(usage)
        assert usd
        return usd


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Generator[Played]:
    claude()
    codex()
    root = tmp_path_factory.mktemp("lab")
    write_task(root / "kernels" / "scale")
    path = f"{opencode().parent}:{NODE}:/usr/local/bin:/usr/bin:/bin"
    with ScriptedModel(script()) as model:
        model.requests = Replies(model, [_bare(one) for one in SPENDERS.values()])
        places = {"ANTHROPIC_BASE_URL": model.url, "OPENAI_BASE_URL": f"{model.url}/v1"}
        with served(root, PATH=path, XDG_DATA_HOME=str(root / "nobody"), **KEYS, **places) as lab:
            result = Played(root, {}, {}, model, {TOKEN})
            anyio.run(_play, result, lab.url, lab.process.pid)
        yield result


async def _play(played: Played, url: str, server: int) -> None:
    """Silences first: they take their time while the others work."""
    started: dict[tuple[str, str], dict[str, Any]] = {}
    async with scene(played.root, url, server) as lab:
        await lab.open_run("silences", failed={_spec(SILENT, vendor): 5 for vendor in SILENT})
        for vendor in SILENT:
            started["silent", vendor] = await lab.spawned(f"silent-{vendor}", _spec(SILENT, vendor), QUIET)
        await until(lambda: played.asked("silent-1") >= len(SILENT))
        # What is looked for after an end is found before it.
        assert all(lab.left(role["folder"]) for role in started.values())
        await lab.open_run("crashes", failed={_spec(CAPPED, vendor): 4 for vendor in CAPPED})
        for vendor in CAPPED:
            started["killed", vendor] = await lab.spawned(f"{DOOMED}-{vendor}", _spec(CAPPED, vendor))
        await lab.open_run("caps")
        for vendor in CAPPED:
            started["capped", vendor] = await lab.spawned(f"capped-{vendor}", _spec(CAPPED, vendor), usd=CAP_USD)
        await _spend_a_dollar(played, lab)
        for what, role in started.items():
            played.roles[what] = await lab.ended(role)
        played.tokens |= lab.tokens


async def _spend_a_dollar(played: Played, lab: Scene) -> None:
    await lab.open_run("dollar", config=json.dumps({"usd": RUN_USD, "reserve": RESERVE}))
    spenders = {vendor: await lab.spawned(vendor, _spec(SPENDERS, vendor)) for vendor in SPENDERS}
    for vendor, role in spenders.items():
        played.roles["spender", vendor] = await lab.ended(role)
    played.late = await lab.ended(await lab.spawned("late", "codex:gpt-5-nano"))


def test_a_run_of_all_vendors_that_would_spend_for_ever_ends_before_its_reserve(played: Played) -> None:
    allowed, given = RUN_USD * (1 - RESERVE), 0.0
    costs = {vendor: played.cost(model, TOKENS[_bare(model)]) for vendor, model in SPENDERS.items()}
    for vendor, model in SPENDERS.items():
        role = played.roles["spender", vendor]
        booked = round(role["usd"] / costs[vendor])
        assert (role["state"], role["attempts"], role["left"]) == ("budget", 1, []), role
        assert role["usd"] == pytest.approx(booked * costs[vendor], abs=1e-6), role
        assert 1 <= booked <= played.asked(model) <= booked + 1, role
        given += played.asked(model) * costs[vendor]
    with closing(Ledger(played.root / "lab.db")) as ledger:
        total = ledger.spent("dollar").usd
    assert total == pytest.approx(sum(played.roles["spender", vendor]["usd"] for vendor in SPENDERS), abs=1e-5)
    assert allowed <= total <= allowed + sum(costs.values()) < RUN_USD
    # With the replies that were under way when their askers were ended, and that nobody heard.
    assert given <= RUN_USD + sum(costs.values())
    assert (played.late["state"], played.late["usd"], played.late["left"]) == ("budget", 0.0, [])


@pytest.mark.parametrize("vendor", CAPPED)
def test_a_cap_ends_a_role_whose_model_has_not_finished(played: Played, vendor: str) -> None:
    role, model = played.roles["capped", vendor], CAPPED[vendor]
    assert (role["state"], role["attempts"], role["left"]) == ("budget", 1, []), role
    assert role["usd"] == pytest.approx(played.cost(model, COSTLY), abs=1e-6)
    assert played.asked(model) <= 2


@pytest.mark.parametrize("vendor", SILENT)
def test_a_silent_model_ends_its_role_as_stalled(played: Played, vendor: str) -> None:
    role = played.roles["silent", vendor]
    assert (role["state"], role["attempts"], role["usd"], role["left"]) == ("stalled", 1, 0.0, []), role
    assert "no output for 0.3 minutes" in role["note"] and "left alone" in role["note"]


@pytest.mark.parametrize("vendor", CAPPED)
def test_an_agent_that_is_killed_at_each_start_is_left_alone_in_the_end(played: Played, vendor: str) -> None:
    role = played.roles["killed", vendor]
    assert (role["state"], role["attempts"], role["usd"], role["left"]) == ("crashed", 2, 0.0, []), role
    assert "signal 9" in role["note"] and "left alone" in role["note"]


def test_no_key_and_no_token_is_in_any_file_of_the_lab_or_was_told_to_a_model(played: Played) -> None:
    secrets = [secret.encode() for secret in (*KEYS.values(), *played.tokens)]
    assert len(secrets) > len(played.roles)
    files = [file for file in played.root.rglob("*") if file.is_file() and not file.is_symlink()]
    texts = {str(file): file.read_bytes() for file in files}
    texts |= {f"request {n}": json.dumps(one.body).encode() for n, one in enumerate(played.model.requests)}
    assert not [name for name, text in texts.items() if any(secret in text for secret in secrets)]


def _spec(models: dict[str, str], vendor: str) -> str:
    return f"{vendor}:{models[vendor]}"


def _bare(model: str) -> str:
    """As the vendor is told it."""
    return model.rpartition("/")[2]
