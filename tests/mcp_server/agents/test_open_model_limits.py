"""What an open model can take in, and what is missing before one starts: told, listed, found out."""

import json
import subprocess
import sys
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from mcp_server.agents.agent import get_agent
from mcp_server.agents.open_model import AGENT
from mcp_server.agents.open_model_endpoint import model_of, window_of
from tests.mcp_server.agents.direct import LabServer, brief_of, play, served
from tests.mcp_server.agents.inside import open_model_inside
from tests.scripted_model import Call, ScriptedModel, Step, Usage4
from toolkits.core.errors import InvalidInput


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Generator[LabServer]:
    with served(tmp_path_factory.mktemp("lab")) as server:
        yield server


def keys_of(model: ScriptedModel, **more: str) -> dict[str, str]:
    return {"OPENAI_BASE_URL": f"{model.url}/v1", **more}


@pytest.mark.anyio
async def test_a_long_conversation_is_cut_to_the_window_and_the_task_stays(
    lab: LabServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    look = Step(calls=[Call("describe_task", {"task": "kmeans_assign"})], usage=Usage4(500, 0, 0, 10))
    overflow = {"error": {"message": "request exceeds the available context size", "type": "exceed_context_size_error"}}

    def relent(line: str, process: subprocess.Popen[str]) -> None:
        if '"retry"' in line:
            model.script = [look] * 4 + [Step(text="All done.", usage=Usage4(0, 0, 0, 0))]

    with ScriptedModel([look] * 4 + [Step(http=400, body=overflow)]) as model:
        played = play(AGENT, brief_of(tmp_path, lab.url, "open-1", keys_of(model)), relent)
        refused, accepted = (len(json.dumps(request.body["messages"])) for request in model.requests[-2:])
        assert played.ended.ending == "done" and accepted < 0.75 * refused
        assert "Make `scale` fast." in json.dumps(model.requests[-1].body["messages"])
        told = await open_model_inside(monkeypatch, capsys)(
            brief_of(tmp_path, lab.url, "open-1", keys_of(model, OPEN_MODEL_CONTEXT="9000"))
        )
        sizes = [len(json.dumps(request.body["messages"])) for request in model.requests[-5:]]
    assert told.usage.output_tokens > 40  # four replies say that they used 10, of the last one nothing is said
    assert told.ended.ending == "done" and sizes[1] < sizes[2] < sizes[3] > 0.95 * sizes[4]


def test_what_is_missing_is_said_before_anything_starts(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="open_model:NAME"):
        AGENT.start(brief_of(tmp_path, "http://127.0.0.1:1/mcp", "", {"OPENAI_API_KEY": "x"}))
    with pytest.raises(InvalidInput, match="export OPENAI_BASE_URL"):
        AGENT.start(brief_of(tmp_path, "http://127.0.0.1:1/mcp", "open-1", {}))
    with pytest.raises(InvalidInput, match="OPEN_MODEL_CONTEXT"):
        AGENT.start(brief_of(tmp_path, "", "open-1", {"OPENAI_API_KEY": "x", "OPEN_MODEL_CONTEXT": "many"}))


@pytest.mark.anyio
async def test_its_state_is_told_without_a_key_and_without_loading_a_model_library() -> None:
    ready = await AGENT.check({"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"})
    assert ready.program and "pydantic-ai 2." in ready.version and not ready.remedy
    bare = await AGENT.check({})
    assert "export OPENAI_BASE_URL=" in bare.remedy
    code = "import sys, mcp_server.agents.open_model, mcp_server.agents.acp as a; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert not {name.split(".")[0] for name in done.stdout.split()} & {"pydantic_ai", "openai", "fastmcp", "acp"}
    assert get_agent("open_model") is AGENT


LISTED = {
    "object": "list",
    "data": [
        {"id": "vllm", "object": "model", "max_model_len": 32768},
        {"id": "llama.cpp", "object": "model", "meta": {"n_ctx": 8192}},
        {"id": "ollama", "object": "model"},
    ],
}


class _Lists(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(LISTED).encode())


@pytest.mark.anyio
async def test_servers_that_list_the_context_of_a_model_are_believed(monkeypatch: pytest.MonkeyPatch) -> None:
    with HTTPServer(("127.0.0.1", 0), _Lists) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.server_address[1]}/v1")
        windows: list[int] = []
        for name in ("vllm", "llama.cpp", "ollama"):
            async with model_of(name) as model:
                windows.append(await window_of(model))
        server.shutdown()
        thread.join()
    assert windows == [32768, 8192, 0]
