"""Pictures of runs and evaluations, as a client gets them: an image and nothing beside it."""

import struct
import sys
from base64 import b64decode
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from mcp import Client
from mcp.types import CallToolResult, ImageContent, TextContent

from mcp_server import plot_data, plots
from mcp_server.lab import Lab
from mcp_server.server import build_server
from toolkits.core import process

pytestmark = pytest.mark.anyio


@pytest.fixture
async def client(lab: Lab) -> AsyncGenerator[Client]:
    async with Client(build_server(lab), raise_exceptions=True) as client:
        yield client


def picture(answer: CallToolResult) -> bytes:
    (image,) = answer.content
    assert isinstance(image, ImageContent) and image.mime_type == "image/png"
    assert answer.structured_content is None and not answer.is_error
    return b64decode(image.data)


def drawn(png: bytes) -> bool:
    """A PNG of a useful size, small enough to send, with more on it than a frame."""
    width, height = struct.unpack(">II", png[16:24])
    return png.startswith(b"\x89PNG") and width > 600 and height > 400 and 10_000 < len(png) < 200_000


async def test_an_evaluation_and_the_progress_to_it_are_drawn(client: Client, lab: Lab, tmp_path: Path) -> None:
    for mode in ("check", "full"):
        answer = await client.call_tool("benchmark", {"task": "scale", "path": "naive", "mode": mode})
    assert answer.structured_content
    evaluation = answer.structured_content["evaluation"]
    assert drawn(picture(await client.call_tool("plot", {"of": evaluation})))
    words = ["-m", "mcp_server", "--root", str(lab.workspace.root), "plot", evaluation, "--out", "verb.png"]
    await process.run([sys.executable, "-P", *words], cwd=tmp_path, timeout_s=60)
    assert drawn((tmp_path / "verb.png").read_bytes())
    assert drawn(picture(await client.call_tool("plot", {})))
    progress = plot_data.of_run(lab.ledger, "")
    assert [point.speedup is None for point in progress.points] == [True, False]
    assert "2 evaluations" in progress.title and progress.baseline == "torch_out"
    bars = plot_data.of_evaluation(lab.ledger.evaluation(evaluation)).bars
    assert [bar.workload for bar in bars] == ["small", "large"] and all(bar.speedup for bar in bars)


async def test_what_cannot_be_drawn_is_told_with_the_remedy(
    client: Client, lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refusal(of: str) -> str:
        answer = await client.call_tool("plot", {"of": of})
        (text,) = answer.content
        assert answer.is_error and isinstance(text, TextContent)
        return text.text

    assert "nothing was measured" in await refusal("")
    assert "no run 'nope'" in await refusal("nope")
    assert "no evaluation" in await refusal("e0123456789ab")
    checked = await client.call_tool("benchmark", {"task": "scale", "path": "naive", "mode": "check"})
    assert checked.structured_content
    assert "has no times (mode check, PASSED)" in await refusal(checked.structured_content["evaluation"])
    monkeypatch.setattr(plots, "find_spec", str.isspace)  # finds nothing
    assert "pip install 'kernel-lab[plot]'" in await refusal("")
