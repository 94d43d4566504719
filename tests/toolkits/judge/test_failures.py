"""The judge itself fails: out of memory, killed, stopped, hung, never started. Nobody is blamed, the next one works."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from tests.toolkits.conftest import BASELINE, REFERENCE, python
from tests.toolkits.judge.processes import all_end, children, descendants, kill, watched, zygote_of
from tests.toolkits.judge.test_task_faults import Bed
from toolkits.core.errors import HarnessError
from toolkits.core.judge.client import Judge, Patience
from toolkits.core.judge.postmortem import Death
from toolkits.core.schema import BenchmarkResult, Status

pytestmark = pytest.mark.anyio

EXPECTED = '{"y": inputs["x"].double() * inputs["factor"]}'
ENDLESS = "def scale(x, factor, y):\n    while True: pass\n"


@pytest.fixture(scope="module")
async def judge() -> AsyncGenerator[Judge]:
    judge = Judge()
    yield judge
    await judge.close()


@pytest.fixture
def bed(judge: Judge, tmp_path: Path) -> Bed:
    return Bed(judge, tmp_path)


def _reference(body: str, before: str = "") -> str:
    """The task's reference, doing something else first."""
    assert EXPECTED in REFERENCE
    return f"{before}\n" + REFERENCE.replace(f"return {EXPECTED}", f"{body}\n    return {EXPECTED}")


async def _next_one_passes(bed: Bed) -> None:
    result = await bed.judged(bed.task(), mode="check")
    assert result.status is Status.PASSED, result.detail


def _pid(judge: Judge) -> int:
    assert judge.pid
    return judge.pid


@asynccontextmanager
async def _own_judge(python: str = sys.executable, **patience: float) -> AsyncGenerator[Judge]:
    judge = Judge(python, Patience(**patience))
    try:
        yield judge
    finally:
        await judge.close()


class Interference:
    """Does something to the judge's processes once, when the evaluation has come to a certain point."""

    def __init__(self, judge: Judge, action: Callable[[int], None], after: int = 1) -> None:
        self._judge, self._action, self._left = judge, action, after

    def __call__(self) -> None:
        self._left -= 1
        if self._left == 0:
            self._action(_pid(self._judge))


# --- the task's reference --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reference", "where"),
    [
        ("while True: pass\n" + REFERENCE, "<module> (line 1)"),
        (_reference("while True: pass"), "reference (line"),
        (_reference("import ctypes; ctypes.PyDLL(None).pause()"), "reference (line"),
        (REFERENCE.replace("    x = torch.randn", "    while True: pass\n    x = torch.randn"), "make_inputs (line"),
    ],
    ids=["at import", "in Python", "in native code that holds the interpreter", "while drawing inputs"],
)
async def test_a_reference_that_hangs_is_an_invalid_reference_and_says_where(
    bed: Bed, reference: str, where: str
) -> None:
    result = await bed.judged(bed.task(reference, reference_timeout_s=0.5))
    assert (result.status, result.cause) == (Status.INVALID_REFERENCE, "reference_timeout"), result
    assert "did not return within 0.5 s" in result.detail and where in result.detail
    assert "reference_timeout_s" in result.hint and "not the solution" in result.hint
    await _next_one_passes(bed)


def test_the_hang_of_another_task_is_not_blamed_on_this_one() -> None:
    said = 'Current thread 0x1 (most recent call first):\n  File "/tasks/one/reference.py", line 7 in reference\n'
    death = Death(-signal.SIGALRM, said, "reading the request")
    assert death.in_reference(Path("/tasks/one")) == "reference (line 7)" and not death.in_reference(Path("/tasks/two"))
    assert death.error().cause == "judge_died" and not Death(-9, said, "").in_reference(Path("/tasks/one"))


async def test_a_reference_that_allocates_too_much_is_told_to_work_in_pieces(bed: Bed) -> None:
    result = await bed.judged(bed.task(_reference("torch.empty(1 << 50)")))
    assert (result.status, result.cause) == (Status.INVALID_REFERENCE, "bad_reference")
    assert "needs more memory than there is" in result.detail and "in pieces" in result.detail
    await _next_one_passes(bed)


async def test_a_reference_that_ends_the_process_is_blamed_on_no_candidate(bed: Bed) -> None:
    with pytest.raises(HarnessError, match="exit code 3") as failure:
        await bed.judged(bed.task(_reference("import os; os._exit(3)")))
    assert failure.value.cause == "judge_died" and "not to blame" in str(failure.value)
    await _next_one_passes(bed)


async def test_a_reference_may_print(bed: Bed) -> None:
    result = await bed.judged(bed.task(_reference("print('x' * 200_000); import os; os.write(1, b'\\xff')")))
    assert result.status is Status.PASSED, result
    await _next_one_passes(bed)


# --- the machine ------------------------------------------------------------------------------------------------------


async def test_a_judge_that_runs_out_of_memory_says_so_and_blames_nobody(bed: Bed, judge: Judge) -> None:
    await _next_one_passes(bed)
    pid = _pid(judge)
    room = int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * resource.getpagesize() + (1 << 30)
    resource.prlimit(pid, resource.RLIMIT_AS, (room, room))
    # One element, shown as many: the task's own code needs no memory, whatever the judge makes of its values does.
    wide = REFERENCE.replace('torch.randn(axes["rows"], axes["columns"], generator=generator)', "torch.ones(1, 1)")
    wide = wide.replace(
        'return {"x": x * (100 if distribution == "large" else 1)', 'return {"x": x.expand(axes["rows"], -1)'
    )
    wide = wide.replace(EXPECTED, '{"y": torch.full((1, 1), 2.5).double().expand_as(inputs["x"])}')
    huge = bed.task(wide, {"rows": 1 << 31, "columns": 1}, correctness=[{"rows": 1 << 31, "columns": 1}])
    with pytest.raises(HarnessError, match="ree memory") as failure:
        await bed.judged(huge)
    assert failure.value.cause == "out_of_memory" and "not to blame" in str(failure.value)
    await _next_one_passes(bed)


async def test_a_judge_that_is_killed_takes_every_process_with_it_and_the_next_one_works(
    bed: Bed, judge: Judge
) -> None:
    seen: list[int] = []

    def end(pid: int) -> None:
        seen.extend(watched([pid, *descendants(pid)]))
        kill(pid)

    with pytest.raises(HarnessError, match="SIGKILL") as failure:
        await bed.judged(bed.task(call_timeout_s=600), python(ENDLESS), on_progress=Interference(judge, end))
    assert failure.value.cause == "judge_died" and "not to blame" in str(failure.value)
    assert len(seen) > 2 and all_end(seen)
    await _next_one_passes(bed)


async def test_a_judge_that_is_stopped_is_given_up_and_replaced(tmp_path: Path) -> None:
    def stop(pid: int) -> None:
        os.kill(pid, signal.SIGSTOP)

    async with _own_judge(silence_s=1.0) as judge:
        bed = Bed(judge, tmp_path)
        await _next_one_passes(bed)
        task = bed.task(call_timeout_s=0.001, reference_timeout_s=0.1)
        with pytest.raises(HarnessError, match="no sign of life") as failure:
            await bed.judged(task, on_progress=Interference(judge, stop))
        assert failure.value.cause == "judge_hung"
        await _next_one_passes(bed)


async def test_a_candidate_that_someone_else_kills_is_asked_again(bed: Bed, judge: Judge) -> None:
    await _next_one_passes(bed)
    known = set(children(zygote_of(_pid(judge))))
    result: list[BenchmarkResult] = []
    async with anyio.create_task_group() as group:

        async def evaluate() -> None:
            slow = python("import time\n" + BASELINE.replace("    torch", "    time.sleep(0.2)\n    torch"))
            result.append(await bed.judged(bed.task(), slow, mode="check"))

        group.start_soon(evaluate)
        while not (workers := set(children(zygote_of(_pid(judge)))) - known):
            await anyio.lowlevel.checkpoint()
        kill(workers.pop())
    assert result[0].status is Status.PASSED, result


async def test_a_candidate_that_always_kills_itself_is_blamed(bed: Bed) -> None:
    result = await bed.judged(bed.task(), python("def scale(x, factor, y):\n    import os; os.kill(os.getpid(), 9)\n"))
    assert (result.status, result.cause) == (Status.RUNTIME_ERROR, "signal_9") and "twice" in result.hint
    await _next_one_passes(bed)


async def test_a_candidate_that_stops_itself_ends_at_its_time_limit(bed: Bed) -> None:
    stops = "def scale(x, factor, y):\n    import os, signal; os.kill(os.getpid(), signal.SIGSTOP)\n"
    result = await bed.judged(bed.task(call_timeout_s=0.5), python(stops))
    assert (result.status, result.cause) == (Status.TIMEOUT, "time_limit"), result
    await _next_one_passes(bed)


async def test_a_baseline_that_is_killed_is_no_fault_of_the_candidate(bed: Bed, judge: Judge) -> None:
    asleep = "open('/proc/self/comm', 'w').write('asleep')\n    import time; time.sleep(600)\n    torch"
    task = bed.task(call_timeout_s=600)

    def end(pid: int) -> None:
        while not (sleepers := [child for child in children(zygote_of(pid)) if _name(child) == "asleep"]):
            pass
        kill(sleepers[0])

    rounds = len(task.correctness) * len(task.distributions)
    with pytest.raises(HarnessError, match="baseline failed") as failure:
        await bed.judged(
            task,
            baseline=BASELINE.replace("    torch", f"    {asleep}"),
            on_progress=Interference(judge, end, after=rounds + 1),
        )
    assert failure.value.cause == "baseline_failed"
    assert (await bed.judged(bed.task())).status is Status.PASSED


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip()
    except OSError:  # it has just ended
        return ""


async def test_a_zygote_that_is_killed_is_the_labs_failure(bed: Bed, judge: Judge) -> None:
    with pytest.raises(HarnessError, match="zygote") as failure:
        await bed.judged(
            bed.task(call_timeout_s=600),
            python(ENDLESS),
            on_progress=Interference(judge, lambda pid: kill(zygote_of(pid))),
        )
    assert failure.value.cause == "lab_failed"
    await _next_one_passes(bed)


async def test_what_a_server_started_ends_with_it_however_it_ends(bed: Bed, tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(
        "import sys, anyio\nfrom pathlib import Path\nfrom tests.toolkits.judge.test_failures import *\n"
        "async def main():\n"
        "    bed = Bed(Judge(), Path(sys.argv[1]))\n"
        "    task = bed.task(call_timeout_s=600)\n"
        "    await bed.judged(task, python(ENDLESS), on_progress=lambda: print('started', flush=True))\n"
        "anyio.run(main)\n",
        encoding="utf-8",
    )
    folder = tmp_path / "tasks"
    folder.mkdir()
    command = [sys.executable, str(script), str(folder)]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as server:
        assert server.stdout and server.stdout.readline()
        left = watched(descendants(server.pid))
        server.kill()
    assert len(left) > 3 and all_end(left)


# --- a judge that cannot start ----------------------------------------------------------------------------------------


def _script(folder: Path, text: str) -> str:
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("text", ["", "exit 3", "not a script"], ids=["no such file", "ends at once", "nonsense"])
async def test_a_broken_interpreter_for_the_workers_is_one_clear_error(tmp_path: Path, text: str) -> None:
    interpreter = _script(tmp_path, text) if text else "/no/such/python"
    async with _own_judge(interpreter) as judge:
        with pytest.raises(HarnessError, match="the judge did not start") as failure:
            await judge.start()
    assert interpreter in str(failure.value) and failure.value.cause == "judge_not_started"
    assert "Traceback" not in str(failure.value)


async def test_a_judge_without_torch_is_told_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\")\n", encoding="utf-8")
    async with _own_judge() as judge:
        with monkeypatch.context() as patch:
            patch.setenv("PYTHONPATH", str(tmp_path))
            with pytest.raises(HarnessError, match="Install torch and numpy"):
                await judge.start()
        await judge.start()


async def test_a_judge_that_never_is_ready_is_given_up(tmp_path: Path) -> None:
    async with _own_judge(_script(tmp_path, "exec sleep 600"), start_s=3.0) as judge:
        with pytest.raises(HarnessError, match=r"the judge did not start: .* gave no sign of life"):
            await judge.start()


# --- being asked to end -----------------------------------------------------------------------------------------------


async def test_a_caller_that_gives_up_leaves_the_judge_warm(bed: Bed, judge: Judge) -> None:
    await _next_one_passes(bed)
    pid = _pid(judge)
    with anyio.CancelScope() as scope:
        await bed.judged(bed.task(call_timeout_s=600), python(ENDLESS), on_progress=scope.cancel)
    assert scope.cancelled_caught
    await _next_one_passes(bed)
    assert _pid(judge) == pid


async def test_a_judge_that_does_not_let_go_is_killed(tmp_path: Path) -> None:
    async with _own_judge(cancel_s=0.2) as judge:
        bed = Bed(judge, tmp_path)
        await _next_one_passes(bed)
        before = watched([_pid(judge)])
        stuck = bed.task(_reference("while True: pass"), reference_timeout_s=600)
        with anyio.move_on_after(0.5):
            await bed.judged(stuck)
        assert all_end(before)
        await _next_one_passes(bed)
