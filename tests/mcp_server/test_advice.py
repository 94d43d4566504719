"""Advice on a candidate's sources reaches whoever asked, in both halves of the answer, and decides nothing."""

import json
from pathlib import Path

import pytest
from mcp import Client
from mcp.types import TextContent

from mcp_server.lab import Lab
from mcp_server.server import build_server
from tests.mcp_server.conftest import RIGHT, write_solution

pytestmark = pytest.mark.anyio

ODD = f'if (getenv("HOME")) {{ static const float* last; last = x; }} if (time(nullptr) == 1) abort(); {RIGHT}'


async def test_a_right_kernel_with_odd_sources_passes_with_at_most_three_lines_of_advice(lab: Lab) -> None:
    path = write_solution(lab.workspace.root / "odd", ODD)
    kernel = Path(path) / "kernel.cpp"
    kernel.write_text("#include <cstdlib>\n#include <ctime>\n" + kernel.read_text(encoding="utf-8"), encoding="utf-8")
    async with Client(build_server(lab), raise_exceptions=True) as client:
        result = await client.call_tool("benchmark", {"task": "scale", "path": path, "mode": "check"})
    answer = result.structured_content
    assert answer and answer["status"] == "PASSED", answer
    assert len(answer["advice"]) == 3 and answer["advice"][0].startswith("kernel.cpp:6: abort(): ")
    shown = "\n".join(block.text for block in result.content if isinstance(block, TextContent))
    assert all(f"advice: {line}" in shown for line in answer["advice"])
    log = Path(answer["log_path"]).read_text(encoding="utf-8")
    assert len(json.loads(log[log.index("\n{") :])["advice"]) == 4


async def test_a_kernel_that_does_not_build_is_read_as_well(lab: Lab) -> None:
    path = write_solution(lab.workspace.root / "broken", "fork(); y[i] = 0;")
    async with Client(build_server(lab), raise_exceptions=True) as client:
        result = await client.call_tool("benchmark", {"task": "scale", "path": path})
    answer = result.structured_content
    assert answer and answer["status"] == "COMPILE_ERROR"
    assert answer["advice"] == ["kernel.cpp:4: fork: work in another process is not measured"]
