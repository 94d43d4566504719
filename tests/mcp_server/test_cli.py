"""The verbs at a terminal: what they print where, and their exit status."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mcp_server.__main__ import main
from mcp_server.budgets import Caps
from mcp_server.ledger import Ledger
from mcp_server.workspace import Workspace
from tests.mcp_server.conftest import RIGHT, descendants, write_solution

COMMAND = [sys.executable, "-P", "-m", "mcp_server"]


class Terminal:
    """Runs verbs in this process on one root."""

    def __init__(self, root: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.root = root
        self._capture = capture

    def __call__(self, *words: str) -> tuple[int, str, str]:
        """Exit status, stdout, stderr."""
        with pytest.raises(SystemExit) as ended:
            main(["--root", str(self.root), *words])
        printed = self._capture.readouterr()
        return int(ended.value.code or 0), printed.out, printed.err

    def structured(self, *words: str) -> dict[str, Any]:
        _, out, _ = self(*words, "--json")
        answer: dict[str, Any] = json.loads(out)
        return answer


@pytest.fixture
def terminal(root: Path, capsys: pytest.CaptureFixture[str]) -> Terminal:
    return Terminal(root, capsys)


def test_benchmark_shows_a_table_and_ends_with_0_for_a_passing_candidate(terminal: Terminal) -> None:
    status, out, err = terminal("benchmark", "scale", "naive")
    assert status == 0
    assert "99 % interval" in out and "large" in out and "evaluation: e" in out
    assert all(len(line) <= 100 for line in out.splitlines() if line.startswith(("workload", "large", "small")))
    assert err


def test_how_near_a_kernel_is_to_what_the_device_could_do_is_shown(terminal: Terminal) -> None:
    assert "least work of a call: 8*rows*cols + 4*cols bytes" in terminal("describe-task", "rmsnorm")[1]
    status, out, _ = terminal("benchmark", "rmsnorm", "simd")
    assert status == 0 and "of device" in out
    [line] = [line for line in out.splitlines() if line.startswith("r1024_c1024")]
    assert "%" in line and len(line) <= 100
    assert ", at most: L1 " in terminal("devices")[1]


def test_workloads_are_chosen_one_by_one_and_a_stranger_is_refused(terminal: Terminal) -> None:
    status, out, _ = terminal("benchmark", "scale", "naive", "--workload", "large", "--json")
    answer = json.loads(out)
    assert status == 0 and [line["workload"] for line in answer["workloads"]] == ["large"]
    assert (answer["total"], answer["of_task"]) == (1, 2)
    status, _, err = terminal("benchmark", "scale", "naive", "--workload", "huge")
    assert status == 2 and "no workload 'huge': task scale has small, large" in err


def test_a_candidate_that_fails_ends_with_1_and_json_is_all_of_stdout(terminal: Terminal) -> None:
    path = write_solution(terminal.root / "mine", "broken")
    status, out, _ = terminal("benchmark", "scale", path, "--check", "--json")
    assert status == 1
    assert json.loads(out)["status"] == "COMPILE_ERROR"
    assert terminal("compile", "scale", path)[0] == 1


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("describe-task", "scal"), "did you mean 'scale'"),
        (("benchmark", "scale", "/etc"), "outside the allowed folders"),
        (("get-result", "j0"), "no job 'j0'"),
        (("profile", "--", "no-such-program"), "no-such-program"),
        (("wait-role", "r0"), "no role 'r0'"),
        (("verify", "nowhere"), "no run 'nowhere'"),
    ],
)
def test_a_mistake_is_one_line_on_stderr_and_status_2(
    terminal: Terminal, words: tuple[str, ...], complaint: str
) -> None:
    status, out, err = terminal(*words)
    assert (status, out) == (2, "")
    assert complaint in err and err.strip().count("\n") == err.count("queued\n")


def test_what_one_verb_recorded_another_finds(terminal: Terminal) -> None:
    path = write_solution(terminal.root / "mine", RIGHT)
    built = terminal.structured("compile", "scale", path)
    assert built["ok"] is True
    assert terminal.structured("get-result", built["job"]) == built
    broken = terminal.structured("benchmark", "scale", write_solution(terminal.root / "other", "broken"))
    [event] = terminal.structured("read-history")["events"]
    assert event["body"]["evaluation"] == broken["evaluation"]
    assert "COMPILE_ERROR" in terminal("read-history")[1]


def test_tasks_devices_and_lessons_are_shown(terminal: Terminal) -> None:
    assert "Scale a vector" in terminal("list-tasks")[1]
    assert "y = a * x" in terminal("describe-task", "scale")[1]
    assert terminal.structured("devices")["toolkits"]["cpp"] == ""
    lesson = ("--title", "Mask", "--symptom", "crash", "--cause", "tail", "--remedy", "mask", "--op", "norm")
    assert terminal("add-lesson", "simd/mask", *lesson)[0] == 0
    assert "mask" in terminal("read-lessons", "--slug", "simd/mask")[1]


def test_slugs_stay_whole_in_a_table_and_a_query_may_have_several_words(terminal: Terminal) -> None:
    status, out, _ = terminal("read-lessons", "--limit", "50")
    assert status == 0
    assert all(slug in out for slug in Workspace(terminal.root).lesson_files())
    assert all(len(line.rstrip()) <= 100 for line in out.splitlines())
    assert "cpu/" in terminal("read-lessons", "vector", "width")[1]


def test_verify_finds_a_changed_source(terminal: Terminal) -> None:
    workspace = Workspace(terminal.root)
    ledger = Ledger(workspace.database)
    ledger.open_run("night", "scale", {})
    role = ledger.add_role("night", 1, "t", "tuner", "token", Caps(), workspace.role_folder("night", 1, "t"))
    path = write_solution(terminal.root / "mine", "broken")
    environment = os.environ | {"KERNEL_LAB_TOKEN": "token", "KERNEL_LAB_ROOT": str(terminal.root)}
    subprocess.run([*COMMAND, "benchmark", "scale", path], env=environment, capture_output=True, timeout=60)
    [measured] = ledger.evaluations("night", role.id)
    assert terminal("verify", "night")[0] == 0
    source = terminal.root / "solutions" / measured.solution / "kernel.cpp"
    source.write_text(source.read_text(encoding="utf-8") + "// faster", encoding="utf-8")
    status, _, err = terminal("verify", "night")
    assert status == 1 and measured.id in err and "changed" in err


def test_version_and_help_need_no_workspace(capsys: pytest.CaptureFixture[str]) -> None:
    for words, expected in ((["--version"], "kernel-lab "), (["--help"], "benchmark"), (["serve", "--help"], "--http")):
        with pytest.raises(SystemExit):
            main(words)
        assert expected in capsys.readouterr().out


def test_ctrl_c_leaves_no_process_behind(root: Path) -> None:
    path = write_solution(root / "mine", "for (volatile int go = 1; go;) {}")
    task = root / "kernels" / "scale" / "task.yaml"
    task.write_text(task.read_text(encoding="utf-8").replace("call_timeout_s: 2.0", "call_timeout_s: 100"), "utf-8")
    command = [*COMMAND, "--root", str(root), "benchmark", "scale", path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as verb:
        assert verb.stderr
        while "checking" not in (line := verb.stderr.readline()):
            assert line
        family = descendants(verb.pid)
        assert family
        verb.send_signal(signal.SIGINT)
        assert verb.wait(30) == 130
        assert "Traceback" not in verb.stderr.read()
    assert [pid for pid in family if alive(pid)] == []


def test_a_stdio_server_ends_on_sigint_while_its_client_is_still_there(root: Path) -> None:
    with subprocess.Popen(
        [*COMMAND, "--root", str(root), "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin and server.stdout
        server.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}) + "\n")
        server.stdin.flush()
        assert server.stdout.readline()
        server.send_signal(signal.SIGINT)
        assert server.wait(30) == 130


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_evolve_with_a_misspelt_agent_says_which_exist_and_creates_no_run(terminal: Terminal) -> None:
    status, _, err = terminal("evolve", "scale", "--agent", "tunner")
    assert status == 2 and "there is no agent 'tunner'; there are: " in err and "replay, tuner" in err
    assert not (terminal.root / "runs").exists()
