"""An open model as a role of a run: what it spends is booked while it works, and its cap ends it mid-stream."""

from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.mcp_server.agents.direct import TOKEN, served
from tests.mcp_server.conftest import write_task
from tests.scripted_model import Call, ScriptedModel, Step, Usage4

PRICES = "models:\n  open-1: {input: 200, cache_read: 20, cache_write: 200, output: 1000}\n"
LOOK = Step(calls=[Call("list_tasks")], usage=Usage4(1000, 500, 0, 50))
REPLY_USD = 0.26


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_cap_ends_a_role_while_its_model_still_works_and_every_reply_is_paid_for(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write_task(root / "kernels" / "scale")
    (root / "prices.yaml").write_text(PRICES, encoding="utf-8")
    with ScriptedModel([LOOK]) as model:
        keys = {"OPENAI_BASE_URL": f"{model.url}/v1", "OPENAI_API_KEY": "sk-dummy-secret"}
        with served(root, **keys) as lab:
            ended = await spent(lab.url, usd=1.0)
        assert ended["state"] == "budget", ended
        assert ended["usd"] == pytest.approx(REPLY_USD * round(ended["usd"] / REPLY_USD))
        assert 1.0 <= ended["usd"] <= 1.0 + REPLY_USD + 1e-9
    texts = [file.read_bytes() for file in root.rglob("*") if file.is_file()]
    assert not any(b"sk-dummy-secret" in text for text in texts)


async def spent(url: str, usd: float) -> dict[str, Any]:
    """The answer about a role with this cap, once it has ended."""
    role = {"name": "writer", "charter": "Make it fast.", "agent": "open_model:open-1", "usd": usd}
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        await asked(client, "open_run", {"run": "r", "task": "scale", "config": "{}"})
        answer = await asked(client, "spawn_role", role)
        with anyio.fail_after(120):
            while answer["state"] in ("starting", "running"):
                answer = await asked(client, "wait_role", {"role": answer["role"], "wait_s": 30})
    return answer


async def asked(client: Client, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error and result.structured_content, result.content
    return result.structured_content
