"""Every status and every cause is reached: a table of what brings each about, and a test that the table is whole."""

import inspect
import re
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from mcp_server.callers import Callers
from mcp_server.lab import Lab
from mcp_server.ledger import Ledger
from mcp_server.server import build_server
from mcp_server.workspace import Workspace
from tests.mcp_server import test_lab_failures
from tests.mcp_server.conftest import RIGHT, write_solution, write_task
from tests.mcp_server.test_server import structured
from tests.toolkits.gpu import test_device
from tests.toolkits.judge import test_completeness, test_failures
from toolkits.core.causes import Cause, hint, is_known
from toolkits.core.schema import Status

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Scenario:
    """A candidate, the task it is judged under, and what becomes of it."""

    status: Status
    cause: str
    body: str = RIGHT
    """Of the C++ function; or, where it holds `def run`, a Python solution."""
    mode: str = "check"
    task: dict[str, str] = field(default_factory=dict[str, str])
    """Old text -> new text, in task.yaml."""
    reference: dict[str, str] = field(default_factory=dict[str, str])
    returns: bool = False
    """The function returns its output."""


def _python(body: str, before: str = "") -> str:
    return f"import os, sys, torch\n{before}\n\ndef run(x, a, y):\n    {body}\n"


NOT_RIGHT = Status.INCORRECT_NUMERICAL
BROKEN = Status.RUNTIME_ERROR
HACK = Status.REWARD_HACK
NO_JUDGE = Status.INVALID_REFERENCE
RETURNS = 'return {"y": inputs["x"].double() * inputs["a"]}'
MEMO = "key = (x.data_ptr(), x.numel())\n    y.copy_(memo.setdefault(key, x * a))"
LATE = """
  for (int64_t i = 0; i < n; ++i) y[i] = a * x[i];
  std::thread([y] { std::this_thread::sleep_for(std::chrono::milliseconds(30)); y[0] += 1; }).detach();"""
DAEMON = (
    "if not os.fork():\n    os.setsid()\n    if os.fork(): os._exit(0)\n    import time; time.sleep(600)\nos.wait()"
)
STOPPED = "sys.modules['toolkits.core.judge.worker'].process_time_ns = lambda: 0"
SCENARIOS = {
    "right": Scenario(Status.PASSED, ""),
    "broken": Scenario(Status.COMPILE_ERROR, "compile_error", "y[i] = 0;"),
    "wrong": Scenario(NOT_RIGHT, "wrong_values", "for (int64_t i = 0; i < n; ++i) y[i] = x[i];"),
    "nan": Scenario(NOT_RIGHT, "nan_in_output", RIGHT + " volatile float z = 0; y[0] = z / z;"),
    "infinite": Scenario(NOT_RIGHT, "non_finite_differs", RIGHT + " volatile float z = 0; y[0] = 1 / z;"),
    "nothing": Scenario(NOT_RIGHT, "output_not_written", "(void)y;"),
    "race": Scenario(NOT_RIGHT, "not_repeatable", RIGHT + " static int calls = 0; y[0] *= 1 + 2e-7f * calls++;"),
    "shape": Scenario(Status.INCORRECT_SHAPE, "exception", "def run(x, a): return (x * a)[None]\n", returns=True),
    "dtype": Scenario(Status.INCORRECT_DTYPE, "exception", "def run(x, a): return (x * a).double()\n", returns=True),
    "raises": Scenario(BROKEN, "exception", _python("raise ValueError('no')")),
    "leaves": Scenario(BROKEN, "exit_early", _python("os._exit(0)")),
    "wild": Scenario(BROKEN, "signal_11", "*(volatile float*)8 = 0;"),
    "too_far": Scenario(BROKEN, "out_of_bounds_write", RIGHT.replace("i < n", "i <= n")),
    "unsafe": Scenario(BROKEN, "sanitizer", RIGHT + " int k = 2147483647; y[0] = k + int(n);", "sanitize"),
    "greedy": Scenario(BROKEN, "oom", _python("torch.empty(1 << 42)")),
    "endless": Scenario(Status.TIMEOUT, "time_limit", "for (volatile int go = 1; go;) {}"),
    "remembers": Scenario(HACK, "stale_content", _python(MEMO, "memo = {}"), mode="full"),
    "late": Scenario(HACK, "output_changed_after_return", LATE, task={"{n: 1000}": "{n: 8000000}", "  - {n: 1}\n": ""}),
    "clockless": Scenario(
        HACK, "clock_mismatch", _python("[torch.mul(x, a, out=y) for _ in range(50)]", STOPPED), "full"
    ),
    "daemon": Scenario(HACK, "extra_process", _python("torch.mul(x, a, out=y)", DAEMON), mode="full"),
    "no_reference": Scenario(NO_JUDGE, "bad_reference", reference={RETURNS: "return None"}),
    "slow_reference": Scenario(
        NO_JUDGE,
        "reference_timeout",
        task={"call_timeout_s": "reference_timeout_s: 0.5\ncall_timeout_s"},
        reference={RETURNS: "while True: pass"},
    ),
    "deadly_reference": Scenario(Status.HARNESS_ERROR, "judge_died", reference={RETURNS: "import os; os._exit(3)"}),
}
ELSEWHERE: dict[str, Callable[..., Any]] = {
    Cause.MISSING_WORKLOAD: test_completeness.test_a_judge_that_forgets_a_workload_cannot_pass_it,
    Cause.BASELINE_FAILED: test_lab_failures.test_a_baseline_that_fails_is_a_harness_error_that_names_another_way,
    Cause.JUDGE_NOT_STARTED: test_failures.test_a_broken_interpreter_for_the_workers_is_one_clear_error,
    Cause.JUDGE_HUNG: test_failures.test_a_judge_that_is_stopped_is_given_up_and_replaced,
    Cause.OUT_OF_MEMORY: test_failures.test_a_judge_that_runs_out_of_memory_says_so_and_blames_nobody,
    Cause.DISK_FULL: test_lab_failures.test_no_room_for_a_build_is_no_fault_of_the_candidate,
    Cause.NOT_WRITABLE: test_lab_failures.test_builds_that_cannot_be_kept_are_no_fault_of_the_candidate,
    Cause.LAB_FAILED: test_failures.test_a_zygote_that_is_killed_is_the_labs_failure,
    Cause.DEVICE_FAILED: test_device.test_a_driver_that_cannot_be_opened_blames_no_solution,
    Cause.LAUNCH_FAILED: test_device.test_a_launch_that_was_refused_is_a_runtime_error_with_the_runtimes_words,
    Cause.INPUT_MODIFIED: test_device.test_a_solution_that_writes_to_its_input_on_the_device_is_told_so,
    Status.SKIPPED: test_completeness.test_a_candidate_that_fails_is_told_of_every_workload,
    Status.CANCELLED: test_lab_failures.test_a_cancelled_benchmark_says_so_and_leaves_the_judge_warm,
}
"""What needs more than a candidate and a task to come about."""


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def lab(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Lab]:
    """One for all scenarios: each must leave the next one a judge that works."""
    workspace = Workspace(tmp_path_factory.mktemp("lab"))
    lab = Lab(workspace, Callers(Ledger(workspace.database), admin_token="admin"))
    yield lab
    await lab.close()


def _written(root: Path, name: str, scenario: Scenario) -> str:
    """A task and a solution of the scenario's own; the solution's path."""
    task = root / "kernels" / name
    write_task(task)
    for file, changes in (("task.yaml", scenario.task), ("reference.py", scenario.reference)):
        text = (task / file).read_text(encoding="utf-8")
        for old, new in changes.items():
            assert old in text, f"{file} of the test's task has no {old!r} any more"
            text = text.replace(old, new)
        (task / file).write_text(text, encoding="utf-8")
    if "def run" not in scenario.body:
        path = write_solution(task / "solutions" / "mine", scenario.body)
        file = Path(path) / "kernel.cpp"
        file.write_text("#include <chrono>\n#include <thread>\n" + file.read_text(encoding="utf-8"), encoding="utf-8")
        return "mine"
    folder = task / "solutions" / "mine"
    folder.mkdir()
    style = "destination_passing_style: false\n" if scenario.returns else ""
    (folder / "solution.yaml").write_text(f"toolkit: python\nentry_point: kernel.py::run\n{style}", encoding="utf-8")
    (folder / "kernel.py").write_text(scenario.body, encoding="utf-8")
    return "mine"


@pytest.mark.anyio
@pytest.mark.parametrize("name", SCENARIOS)
async def test_a_scenario_ends_with_its_status_and_its_cause(lab: Lab, name: str) -> None:
    scenario = SCENARIOS[name]
    path = _written(lab.workspace.root, name, scenario)
    async with Client(build_server(lab), raise_exceptions=True) as client:
        answer = await structured(client, "benchmark", task=name, path=path, mode=scenario.mode)
    assert (answer["status"], answer.get("cause", "")) == (scenario.status, scenario.cause), answer
    assert scenario.status is Status.PASSED or answer["detail"]
    assert answer.get("hint", "") == hint(scenario.cause)


def test_every_status_and_every_cause_is_reached_by_a_test() -> None:
    reached = {scenario.status for scenario in SCENARIOS.values()} | {s.cause for s in SCENARIOS.values()}
    assert {*Status, *Cause} - reached - set(ELSEWHERE) == set()
    for code, test in ELSEWHERE.items():
        source = inspect.getsource(test)
        told = f'"{code}"' in source or f"Status.{code}" in source
        assert told, f"{test.__name__} says nothing of {code}"


def test_every_cause_in_the_code_is_in_the_table_of_causes() -> None:
    given = re.compile(
        r'(?:cause["\']?\s*[:=]\s*|Failure\(|HarnessError\([^()]*,\s*|Stage\.\w+, |stage, |_foul\(\w+, )"(\w+)"'
    )
    for path in [*(ROOT / "toolkits").rglob("*.py"), *(ROOT / "mcp_server").rglob("*.py")]:
        for code in given.findall(path.read_text(encoding="utf-8")):
            assert is_known(code), f"{path} gives the cause {code!r}, which toolkits/core/causes.py does not have"


def test_every_cause_says_what_it_means_and_a_failure_of_the_lab_blames_nobody() -> None:
    for cause in Cause:
        assert cause.meaning and cause == cause.value and re.fullmatch(r"[a-z_]+", cause)
    for cause in list(Cause)[list(Cause).index(Cause.BASELINE_FAILED) :]:
        assert "not to blame" in cause.hint, cause
    assert is_known("signal_11") and hint("signal_11") and not is_known("signal_999") and not is_known("gremlins")
