"""What `kernel-lab doctor` finds: on this machine, and where something is really missing."""

import json
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from mcp_server.__main__ import main
from tests.toolkits.elsewhere import AS_NOBODY, NOBODY, for_root_only, home, verb
from toolkits.core import sandbox
from toolkits.core.protections import PROTECTIONS

__all__ = ["home"]

BOXES = pytest.mark.skipif(not sandbox.mechanism().bwrap, reason=sandbox.mechanism().why_not or "boxes work")
UNHELD = """
import json, os, socket, sys, tempfile
from toolkits.core.judge import attempts
from toolkits.core.process import started_at
listener = socket.create_server(("127.0.0.1", 0))
with tempfile.NamedTemporaryFile() as file:
    where = (listener.getsockname()[1], file.name, file.name, os.getpid(), started_at(os.getpid()), os.getuid())
    print(json.dumps(attempts.findings(*where)))
"""
OF_THE_JUDGE = {"wall_time", "processes_timed"}
"""Protections that the judge gives and no property of the process."""


def states(answer: dict[str, Any]) -> dict[str, str]:
    return {check["name"]: check["state"] for check in answer["checks"]}


def examined(capsys: pytest.CaptureFixture[str], root: Path | str, *words: str) -> tuple[int, str]:
    """Exit status and stdout of the verb in this process."""
    with pytest.raises(SystemExit) as ended:
        main(["--root", str(root), "doctor", *words])
    return int(ended.value.code or 0), capsys.readouterr().out


@BOXES
def test_where_all_works_it_fits_a_screen_and_ends_with_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out = examined(capsys, tmp_path / "lab")
    lines = out.splitlines()
    assert status == 0 and lines[-1].startswith("all that is needed works"), out
    assert len(lines) <= 80 and max(map(len, lines)) <= 100
    for what, _ in PROTECTIONS.values():
        assert any(f" {what} " in line for line in lines), what
    for area in ("sandbox", "judge", "build", "profile", "timing", "workspace", "agents"):
        assert any(line.startswith(area) for line in lines), area


def test_every_attack_gets_through_where_nothing_holds_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", UNHELD]
    done = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, timeout=60, check=True)
    findings = json.loads(done.stdout)
    assert set(findings) == set(PROTECTIONS) - OF_THE_JUDGE
    assert [name for name, (stopped, _) in findings.items() if stopped] == []


@for_root_only
@BOXES
def test_without_namespaces_it_says_what_is_open_and_the_remedy_and_ends_with_1(home: Path) -> None:
    status, out = verb(home, "doctor", "--json", namespaces=False)
    answer = json.loads(out)
    found = states(answer)
    assert status == 1 and answer["ok"] is False
    for what in (
        "mechanism",
        "compiler in a box",
        "no network",
        "private /tmp",
        "home hidden",
        "no other process seen",
    ):
        assert found[what] == "missing", what
    for what in ("no capability", "memory", "processes, threads", "file size", "open files", "CPU and wall time"):
        assert found[what] == "ok", what
    remedies = {check["name"]: check.get("remedy", "") for check in answer["checks"]}
    assert "user.max_user_namespaces" in remedies["mechanism"]
    assert all(remedies[name] for name, state in found.items() if state == "missing")


@for_root_only
@BOXES
def test_who_is_not_root_lacks_nothing_that_is_needed(home: Path) -> None:
    status, out = verb(home, "doctor", "--json", prefix=AS_NOBODY)
    answer = json.loads(out)
    assert status == 0, out
    assert {name: state for name, state in states(answer).items() if state == "missing"} == {}
    assert states(answer)["another user"] == "note"


def test_a_root_that_cannot_be_written_and_a_compiler_that_builds_nothing_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("CXX", "false")
    status, out = examined(capsys, tmp_path / "file" / "lab", "--json")
    found = {check["name"]: check for check in json.loads(out)["checks"]}
    assert status == 1
    assert found["root"]["state"] == "missing" and "--root" in found["root"]["remedy"]
    assert found["compiler in a box"]["state"] == "missing" and "CXX" in found["compiler in a box"]["remedy"]


def test_a_machine_without_compiler_and_profilers_is_told_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.delenv("CXX", raising=False)
    status, out = examined(capsys, tmp_path / "lab", "--json")
    found = {check["name"]: check for check in json.loads(out)["checks"]}
    assert status == 1
    for name in ("toolkit cpp", "compiler", "compiler in a box"):
        assert found[name]["state"] == "missing" and "apt install g++" in found[name]["remedy"]
    assert found["valgrind"]["state"] == "note" and "apt install valgrind" in found["valgrind"]["remedy"]
    assert found["perf"]["state"] == "note" and "apt install" in found["perf"]["remedy"]


@for_root_only
@BOXES
def test_workers_that_cannot_start_are_told_with_the_reason(home: Path) -> None:
    torch = find_spec("torch")
    assert torch and torch.submodule_search_locations
    (home / "empty").mkdir()
    hide = ["mount", "--bind", str(home / "empty"), torch.submodule_search_locations[0]]
    prefix = ["sh", "-ec", f'{shlex.join(hide)}; exec "$@"', "sh"]
    status, out = verb(home, "doctor", "--json", prefix=prefix)
    [worker] = [check for check in json.loads(out)["checks"] if check["name"] == "worker"]
    assert status == 1 and worker["state"] == "missing"
    assert "torch" in worker["seen"] and "torch" in worker["remedy"]


@for_root_only
@BOXES
def test_a_device_that_cannot_be_leased_is_told(home: Path) -> None:
    (home / f"kernel-lab-{NOBODY}").touch()  # where the lease's folder belongs
    status, out = verb(home, "doctor", "--json")
    found = {check["name"]: check for check in json.loads(out)["checks"]}
    assert status == 1 and found["device lease"]["state"] == "missing"
    assert "TMPDIR" in found["device lease"]["remedy"]
