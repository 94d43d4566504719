"""A truly real model, small as it is, plays a role: it reads, calls the lab and says what came out."""

import json
import re
from pathlib import Path

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from mcp_server.agents.open_model import AGENT
from tests.mcp_server.agents.direct import TOKEN, brief_of, play, served
from tests.small_model import Choices, SmallModel

PROMPT = (
    "The task is kmeans_assign. List the tasks, describe yours, then benchmark the solution panels of kmeans_assign."
)
SOLUTIONS = ["naive", "simd", "panels"]
"""In C++, all of them."""
CHOICES: Choices = [
    {"list_tasks": {}, "devices": {}},
    {"describe_task": {"task": ["matmul", "kmeans_assign"]}},
    {"benchmark": {"task": ["kmeans_assign"], "path": SOLUTIONS, "workloads": [["n8192_k256_d64"]]}},
]


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_real_small_model_benchmarks_a_shipped_solution_through_the_lab(tmp_path: Path) -> None:
    with served(tmp_path / "root") as lab, SmallModel(CHOICES) as model:
        brief = brief_of(tmp_path, lab.url, SmallModel.name, {"OPENAI_BASE_URL": model.url})
        played = play(AGENT, brief.model_copy(update={"prompt": PROMPT}))
        assert played.ended.ending == "done" and played.ended.note, (played.ended, played.errors)
        assert [line["tool"] for line in played.told("tool_call")][1:] == ["describe_task", "benchmark"]
        described, measured = played.told("tool_call")[1:]
        assert json.loads(described["arguments"]) == {"task": "kmeans_assign"}
        assert len(played.told("reply")) == 4 and played.usage.output_tokens > 40
        job = re.search(r'"job": ?"(\w+)"', played.told("tool_result")[-1]["text"])
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}) as http,
            Client(streamable_http_client(lab.url, http_client=http)) as client,
        ):
            assert job
            recorded = (await client.call_tool("get_result", {"id": job[1], "wait_s": 0})).structured_content
    assert recorded and (recorded["status"], recorded["task"]) == ("PASSED", "kmeans_assign"), recorded
    assert recorded["evaluation"] and json.loads(measured["arguments"])["path"] in SOLUTIONS
