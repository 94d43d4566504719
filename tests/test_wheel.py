"""The wheel, installed where nothing else is and used from an empty directory, is the whole lab."""

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def bin_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the built wheel; its dependencies are those of this environment, by path."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    subprocess.run([sys.executable, "-m", "venv", str(folder / "venv")], check=True)
    install = [str(folder / "venv/bin/pip"), "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*install, *map(str, (folder / "dist").glob("*.whl"))], check=True)
    (site,) = (folder / "venv").glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return folder / "venv" / "bin"


def _run(bin_folder: Path, cwd: Path, *arguments: str) -> str:
    command = [str(bin_folder / "kernel-lab"), *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_packages_are_the_wheels_own(bin_folder: Path, tmp_path: Path) -> None:
    code = "import toolkits, mcp_server, supervisor; print(toolkits.__file__, mcp_server.__file__, supervisor.__file__)"
    done = subprocess.run([bin_folder / "python", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert all(path.startswith(str(bin_folder.parent)) for path in done.stdout.split())


@pytest.mark.slow
def test_every_verb_works_from_an_empty_directory(bin_folder: Path, tmp_path: Path) -> None:
    assert "kmeans_assign" in _run(bin_folder, tmp_path, "list-tasks")
    assert "vector" in _run(bin_folder, tmp_path, "read-lessons", "vector width")
    result = json.loads(_run(bin_folder, tmp_path, "benchmark", "rmsnorm", "simd", "--json"))
    assert result["status"] == "PASSED" and result["passed"] == 3
    options = ("--evaluations", "12", "--minutes", "2", "--json")
    figures = json.loads(_run(bin_folder, tmp_path, "evolve", "rmsnorm", *options))
    assert figures["evaluations"] <= 12 and (tmp_path / ".kernel-lab" / "runs" / "rmsnorm" / "LEARNINGS.md").is_file()


@pytest.mark.slow
@pytest.mark.anyio
async def test_it_serves(bin_folder: Path, tmp_path: Path) -> None:
    server = StdioServerParameters(command=str(bin_folder / "kernel-lab"), args=["serve"], cwd=str(tmp_path))
    async with Client(server) as client:
        tasks = await client.call_tool("list_tasks", {})
        assert tasks.structured_content and len(tasks.structured_content["tasks"]) == 5
