"""The floors of the house, as tests: imports go down only, packages are this checkout's, heavy imports stay out."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ALLOWED = {
    "toolkits": {"toolkits"},
    "mcp_server": {"mcp_server", "toolkits"},
    "supervisor": {
        "supervisor",
        "mcp_server.schema",
        "toolkits.core.schema",
        "toolkits.core.errors",
        "toolkits.core.process",
    },
}
MAY_START = {"toolkits/core/process.py", "toolkits/core/judge/zygote.py"}


def _sources(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_imports_point_downward(package: str) -> None:
    for path in _sources(package):
        for name in _imports(path):
            if name.split(".")[0] in ALLOWED:
                assert any(f"{name}.".startswith(f"{allowed}.") for allowed in ALLOWED[package]), f"{path}: {name}"


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_this_checkout_is_what_gets_imported(package: str) -> None:
    module = __import__(package)
    assert Path(str(module.__file__)).parent == ROOT / package


def test_data_folders_are_no_packages() -> None:
    assert not list((ROOT / "kernels").glob("**/__init__.py")) and not list((ROOT / "lessons").glob("**/__init__.py"))


def test_only_the_process_module_and_the_zygote_start_processes() -> None:
    for package in ALLOWED:
        for path in _sources(package):
            if str(path.relative_to(ROOT)) in MAY_START:
                continue
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
                assert not called.startswith(("subprocess.", "os.fork", "os.system", "os.popen", "os.spawn")), path
                assert called not in ("anyio.open_process", "anyio.run_process", "Popen"), path


def test_only_the_ledger_writes_sql() -> None:
    for path in [*_sources("mcp_server"), *_sources("supervisor"), *_sources("toolkits")]:
        if not path.name.startswith("ledger") and path.name != "rocpd.py":  # which reads AMD's databases
            assert "sqlite3" not in path.read_text(encoding="utf-8"), path


def test_the_server_imports_neither_torch_nor_other_heavy_packages() -> None:
    code = "import sys, mcp_server.server, mcp_server.serving; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    loaded = {name.split(".")[0] for name in done.stdout.split()}
    assert not loaded & {"torch", "triton", "cupy", "optuna", "rich", "typer"}
