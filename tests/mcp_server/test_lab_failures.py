"""The lab itself fails, through the front door: one clear answer with a remedy, nobody blamed, the next call works."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from mcp_server.callers import Callers
from mcp_server.judging import Judging
from mcp_server.lab import Lab
from mcp_server.ledger import Ledger
from mcp_server.server import build_server
from mcp_server.workspace import Workspace
from tests.mcp_server.conftest import RIGHT, write_solution
from tests.mcp_server.test_server import refusal, structured
from tests.toolkits.judge.processes import kill
from toolkits.core.judge.client import Judge

ENDLESS = "for (volatile int go = 1; go;) {}"


@pytest.fixture
def judge() -> Judge:
    return Judge()


@pytest.fixture
async def lab(root: Path, judge: Judge) -> AsyncGenerator[Lab]:
    """As in conftest, with a judge that the test can reach."""
    workspace = Workspace(root)
    lab = Lab(workspace, Callers(Ledger(workspace.database), admin_token="admin"), judging=Judging(judge))
    yield lab
    await lab.close()


@pytest.fixture
async def client(lab: Lab) -> AsyncGenerator[Client]:
    async with Client(build_server(lab), raise_exceptions=True) as client:
        yield client


def _when(stage: str, action: Callable[[], None], times: int) -> Callable[..., Any]:
    """A progress callback that acts when an evaluation comes to a stage, so many times."""
    left = [times]

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        if left[0] and stage in (message or ""):
            left[0] -= 1
            action()

    return hear


def _kill(judge: Judge) -> None:
    if judge.pid:
        kill(judge.pid)


@pytest.mark.anyio
async def test_an_evaluation_survives_the_death_of_its_judge(client: Client, judge: Judge, root: Path) -> None:
    arguments = {"task": "scale", "path": write_solution(root / "mine", RIGHT)}
    done = await client.call_tool(
        "benchmark", arguments, progress_callback=_when("timing", lambda: _kill(judge), times=1)
    )
    answer: dict[str, Any] = done.structured_content or {}
    assert answer["status"] == "PASSED", answer


@pytest.mark.anyio
async def test_a_judge_that_dies_twice_is_a_harness_error_on_record_and_the_next_one_works(
    client: Client, root: Path
) -> None:
    reference = root / "kernels" / "scale" / "reference.py"
    good = reference.read_text(encoding="utf-8")
    reference.write_text(
        good.replace('    return {"y"', '    import os; os._exit(3)\n    return {"y"'), encoding="utf-8"
    )
    answer = await structured(client, "benchmark", task="scale", path="naive")
    assert (answer["status"], answer["cause"]) == ("HARNESS_ERROR", "judge_died"), answer
    assert "exit code 3" in answer["detail"] and "not to blame" in answer["hint"]
    assert {line["status"] for line in answer["workloads"]} == {"SKIPPED"}
    [event] = (await structured(client, "read_history", kinds=["evaluation"]))["events"]
    assert event["body"]["status"] == "HARNESS_ERROR"
    reference.write_text(good, encoding="utf-8")
    assert (await structured(client, "benchmark", task="scale", path="naive", mode="check"))["status"] == "PASSED"


@pytest.mark.anyio
async def test_a_cancelled_benchmark_says_so_and_leaves_the_judge_warm(
    client: Client, judge: Judge, root: Path
) -> None:
    right = write_solution(root / "right", RIGHT)
    assert (await structured(client, "benchmark", task="scale", path=right, mode="check"))["status"] == "PASSED"
    pid = judge.pid
    path = write_solution(root / "mine", ENDLESS)
    started = await structured(client, "benchmark", task="scale", path=path, wait_s=0)
    reached, ended = anyio.Event(), {"state": "not cancelled"}
    async with anyio.create_task_group() as group:

        async def wait() -> None:
            hear = _when("checking", reached.set, times=1)
            await client.call_tool("get_result", {"id": started["job"]}, progress_callback=hear)

        group.start_soon(wait)
        await reached.wait()
        ended = await structured(client, "cancel", job=started["job"])
    assert (ended["state"], ended.get("status")) == ("cancelled", "CANCELLED")
    assert not (await structured(client, "read_history", kinds=["evaluation"], after=1))["events"]
    assert (await structured(client, "benchmark", task="scale", path=right, mode="check"))["status"] == "PASSED"
    assert judge.pid == pid


@pytest.mark.anyio
async def test_a_baseline_that_fails_is_a_harness_error_that_names_another_way(client: Client, root: Path) -> None:
    baseline = root / "kernels" / "scale" / "solutions" / "torch_out" / "kernel.py"
    baseline.write_text("def run(x, a, y):\n    raise ValueError('not today')\n", encoding="utf-8")
    answer = await structured(client, "benchmark", task="scale", path="naive")
    assert (answer["status"], answer["cause"]) == ("HARNESS_ERROR", "baseline_failed"), answer
    assert "not today" in answer["detail"] and "choose another `baseline`" in answer["hint"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("workloads", "complaint"),
    [
        ([], "an empty selection of workloads measures nothing"),
        (["huge"], "no workload 'huge': task scale has small, large"),
        (["small", "small"], "named more than once"),
    ],
)
async def test_a_selection_of_workloads_that_is_none_is_refused(
    client: Client, workloads: list[str], complaint: str
) -> None:
    assert complaint in await refusal(client, "benchmark", task="scale", path="naive", workloads=workloads)


@pytest.mark.anyio
async def test_a_part_of_the_workloads_never_passes_as_the_whole(client: Client, lab: Lab) -> None:
    wrong = {"task": "scale", "path": "naive", "mode": "check", "workloads": ["small"]}
    assert "mode 'check' times no workload" in await refusal(client, "benchmark", **wrong)
    part = await structured(client, "benchmark", task="scale", path="naive", workloads=["large"])
    assert (part["status"], part["passed"], part["total"], part["of_task"]) == ("PASSED", 1, 1, 2)
    assert "over 1 of 1 workloads asked for, of the task's 2" in part["summary"]
    assert [line["workload"] for line in part["workloads"]] == ["large"]
    [event] = (await structured(client, "read_history", kinds=["evaluation"]))["events"]
    assert event["body"]["partial"] is True
    whole = await structured(client, "benchmark", task="scale", path="naive", workloads=["large", "small"])
    assert whole["total"] == whole["of_task"] == 2 and "of the task's" not in whole["summary"]
    assert lab.ledger.evaluation(whole["evaluation"]).result.partial is False


# --- folders that cannot be written -----------------------------------------------------------------------------------


def _cli(root: Path, *words: str, before: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    command = [*before, sys.executable, "-P", "-m", "mcp_server", "--root", str(root), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"COLUMNS": "500"})


BENCHMARK = ("benchmark", "scale", "naive", "--check")


@pytest.mark.parametrize("folder", ["builds", "logs", "solutions"])
def test_a_file_where_the_lab_needs_a_folder_is_named(root: Path, folder: str) -> None:
    (root / folder).write_text("in the way", encoding="utf-8")
    done = _cli(root, *BENCHMARK)
    assert done.returncode != 0 and "Traceback" not in done.stderr, done.stderr
    assert f"cannot make the folder {root / folder}" in done.stdout + done.stderr
    assert "remove what lies there" in done.stdout + done.stderr
    (root / folder).unlink()
    assert _cli(root, *BENCHMARK).returncode == 0


def _private(*mounts: str) -> list[str]:
    """A command prefix: mounts of its own, which end with it; others than root become root in a namespace for that."""
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--mount"]
    return [*unshare, "sh", "-c", f'{" && ".join(mounts)} && exec "$@"', "sh"]


def test_a_workspace_that_is_read_only_is_one_error_with_a_remedy(root: Path) -> None:
    assert _cli(root, *BENCHMARK).returncode == 0
    done = _cli(root, *BENCHMARK, before=_private(f"mount --bind {root} {root}", f"mount -o remount,bind,ro {root}"))
    assert done.returncode != 0 and "Traceback" not in done.stderr
    said = done.stdout + done.stderr
    assert str(root) in said and "--root" in said, said
    assert _cli(root, *BENCHMARK).returncode == 0


@pytest.mark.parametrize("size", ["64k", "192k"], ids=["no room for the ledger", "no room for a build"])
def test_a_full_disk_is_no_fault_of_the_candidate(root: Path, size: str) -> None:
    full = root.parent / "full"
    full.mkdir()
    mounts = (f"mount -t tmpfs -o size={size} tmpfs {full}", f"cp -r {root}/kernels {full}/")
    done = _cli(full, *BENCHMARK, "--json", before=_private(*mounts))
    assert done.returncode != 0 and "Traceback" not in done.stderr, done.stderr
    said = done.stdout + done.stderr
    assert "COMPILE_ERROR" not in said and ("make room" in said or "no room" in said), said


def test_no_room_for_a_build_is_no_fault_of_the_candidate(root: Path) -> None:
    (root / "builds").mkdir()
    before = _private(f"mount -t tmpfs -o size=16k tmpfs {root}/builds")
    answer = json.loads(_cli(root, *BENCHMARK, "--json", before=before).stdout)
    assert (answer["status"], answer["cause"]) == ("HARNESS_ERROR", "disk_full") and "make room" in answer["hint"]


def test_builds_that_cannot_be_kept_are_no_fault_of_the_candidate(root: Path) -> None:
    (root / "builds").mkdir()
    before = _private(f"mount -t tmpfs -o ro tmpfs {root}/builds")
    answer = json.loads(_cli(root, *BENCHMARK, "--json", before=before).stdout)
    assert (answer["status"], answer["cause"]) == ("HARNESS_ERROR", "not_writable") and "writable" in answer["hint"]


def test_without_any_temporary_folder_the_lab_says_so(root: Path) -> None:
    before = _private(f"mount --bind {root} {root}", "mount -o remount,bind,ro /")
    done = _cli(root, *BENCHMARK, before=before)
    assert done.returncode != 0 and "Traceback" not in done.stderr, done.stderr
    assert "No usable temporary directory" in done.stderr and "name another by --root or TMPDIR" in done.stderr
    assert _cli(root, *BENCHMARK).returncode == 0
