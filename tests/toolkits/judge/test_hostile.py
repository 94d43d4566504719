"""Solutions that attack the judge: each gives one clear outcome, and the next evaluation works."""

import os
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from tests.toolkits.conftest import LOOP, Evaluate, cpp, python
from toolkits.core.errors import HarnessError
from toolkits.core.process import started_at
from toolkits.core.schema import Solution, Stage, Status

pytestmark = pytest.mark.anyio

CHANNEL = """
import json, os, socket, stat, sys, torch

def channel():
    found = [fd for fd in range(3, 64) if os.path.exists(f"/proc/self/fd/{fd}") and stat.S_ISSOCK(os.fstat(fd).st_mode)]
    return socket.socket(fileno=os.dup(found[0]))

def request():
    frame = sys._getframe()
    while "request" not in frame.f_locals:
        frame = frame.f_back
    return frame.f_locals["request"]
"""


def _hostile(body: str, before: str = "") -> Solution:
    """A right solution that does `body` first."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return python(f"{CHANNEL}\n{before}\ndef scale(x, factor, y):\n{lines}    torch.mul(x, factor, out=y)\n")


async def _next_one_passes(evaluate: Evaluate) -> None:
    result = await evaluate(cpp(LOOP))
    assert result.status is Status.PASSED, result.detail


async def test_arguments_and_environment_do_not_name_this_checkout(evaluate: Evaluate) -> None:
    told = "' '.join([*sys.argv, *sys.orig_argv, *os.environ, *os.environ.values()])"
    result = await evaluate(_hostile(f"raise ValueError({told})"))
    assert result.cause == "exception" and str(Path(__file__).parents[3]) not in result.detail, result.detail


@pytest.mark.parametrize("status", ["PASSED", "INVALID_REFERENCE", "HARNESS_ERROR", "no such status"])
async def test_a_forged_status_is_a_runtime_error(evaluate: Evaluate, status: str) -> None:
    forged = f"dict(id=request()['id'], nonce=request()['nonce'], error='all good', status={status!r})"
    result = await evaluate(_hostile(f"channel().send(json.dumps({forged}).encode())"))
    assert (result.status, result.cause) == (Status.RUNTIME_ERROR, "exception"), result.detail


@pytest.mark.parametrize(
    "junk", ["b'['*100_000", "b'\\xff'*100_000", "b'null'", "b'[1]'", "b'{\"id\": 1}'", "b'1'*50_000", "b'{}'"]
)
async def test_junk_on_the_channel_is_dropped(evaluate: Evaluate, junk: str) -> None:
    result = await evaluate(_hostile(f"channel().send({junk})"))
    assert result.status is Status.PASSED, result.detail


async def test_a_flooded_channel_ends_at_the_time_limit(evaluate: Evaluate) -> None:
    result = await evaluate(_hostile("line = channel()\nwhile True: line.send(b'junk')"))
    assert (result.status, result.cause) == (Status.TIMEOUT, "time_limit"), result.detail


async def test_an_error_text_that_is_no_unicode_is_reported(evaluate: Evaluate) -> None:
    result = await evaluate(_hostile("raise ValueError('bad \\ud800 text')"))
    assert (result.status, result.cause) == (Status.RUNTIME_ERROR, "exception") and "bad" in result.detail


async def test_closing_every_descriptor_is_the_solutions_own_end(evaluate: Evaluate) -> None:
    result = await evaluate(_hostile("os.closerange(0, 1000)"))
    assert result.status is Status.RUNTIME_ERROR and result.detail, result
    await _next_one_passes(evaluate)


async def test_a_worker_that_ends_before_it_has_memory_is_blamed(evaluate: Evaluate) -> None:
    result = await evaluate(_hostile("", before="channel().shutdown(socket.SHUT_WR)"))
    assert result.status is Status.RUNTIME_ERROR, result
    dies = "line = channel()\nimport threading\ndef end():\n    line.recv(1, socket.MSG_PEEK)\n    os._exit(3)\n"
    result = await evaluate(_hostile("", before=dies + "threading.Thread(target=end).start()"))
    assert (result.status, result.cause) == (Status.RUNTIME_ERROR, "exit_early"), result
    await _next_one_passes(evaluate)


async def test_a_thread_that_prints_for_ever_does_not_hold_the_judge(evaluate: Evaluate) -> None:
    endless = "import threading\ndef shout():\n    while True: os.write(1, b'x' * 4096)\n"
    result = await evaluate(_hostile("threading.Thread(target=shout).start()\nraise ValueError('no')", before=endless))
    assert (result.status, result.cause) == (Status.RUNTIME_ERROR, "exception"), result.detail


@pytest.mark.parametrize("whom", ["1", "-1", "2", "the tests"])
async def test_a_solution_finds_nobody_to_kill(evaluate: Evaluate, whom: str) -> None:
    pid = os.getpid() if whom == "the tests" else whom
    body = f"import contextlib\nif {pid} != os.getpid():\n    with contextlib.suppress(OSError): os.kill({pid}, 9)"
    result = await evaluate(_hostile(body))
    assert result.status is Status.PASSED, result.detail


async def test_a_solution_that_kills_its_parent_ends_only_itself(evaluate: Evaluate) -> None:
    result = await evaluate(_hostile("os.kill(os.getppid(), 9)\nimport time; time.sleep(60)"))
    assert (result.status, result.cause) == (Status.RUNTIME_ERROR, "signal_9"), result.detail
    await _next_one_passes(evaluate)


async def test_a_zygote_that_dies_during_an_evaluation_is_no_fault_of_the_solution(evaluate: Evaluate) -> None:
    await _next_one_passes(evaluate)
    asleep = "open('/proc/self/comm', 'w').write('asleep')\nimport time; time.sleep(60)"

    async def kill_it_then() -> None:
        while "asleep" not in {_text(Path(f"/proc/{pid}/comm")) for pid in _children(_zygote())}:
            await anyio.lowlevel.checkpoint()
        _end([_zygote()])

    async with anyio.create_task_group() as group:
        group.start_soon(kill_it_then)
        with pytest.raises(HarnessError, match="zygote"):
            await evaluate(_hostile(asleep))
    await _next_one_passes(evaluate)


async def test_a_zygote_that_dies_between_evaluations_is_replaced(evaluate: Evaluate) -> None:
    await _next_one_passes(evaluate)
    _end([_zygote()])
    await _next_one_passes(evaluate)


async def test_a_baseline_that_dies_between_evaluations_is_replaced(evaluate: Evaluate) -> None:
    assert (await evaluate(cpp(LOOP), "full")).status is Status.PASSED
    _end(_children(_zygote()))
    assert (await evaluate(cpp(LOOP), "full")).status is Status.PASSED


async def test_what_a_solution_leaves_running_is_ended_even_in_a_session_of_its_own(evaluate: Evaluate) -> None:
    name = f"left{os.getpid()}"
    escape = (
        "if not os.fork():\n    os.setsid()\n    if os.fork(): os._exit(0)\n"
        f"    open('/proc/self/comm', 'w').write({name!r})\n    open('note', 'w').write('runs')\n"
        "    import time; time.sleep(600)\n"
        "while not os.path.exists('note'): pass\nraise ValueError('it runs')"
    )
    result = await evaluate(_hostile(escape))
    assert "it runs" in result.detail
    assert name not in {_text(path) for path in Path("/proc").glob("[0-9]*/comm")}


async def test_a_daemon_beside_the_measurement_is_foul_play(evaluate: Evaluate) -> None:
    daemon = (
        "if not os.fork():\n    os.setsid()\n    if os.fork(): os._exit(0)\n    import time; time.sleep(600)\nos.wait()"
    )
    result = await evaluate(_hostile("", before=daemon), "full")
    assert (result.status, result.stage, result.cause) == (Status.REWARD_HACK, Stage.TIMING, "extra_process"), result


async def test_many_evaluations_leave_no_descriptor_and_no_process(evaluate: Evaluate) -> None:
    bad = [cpp("*(volatile int*)8 = 1;"), python("def scale(x, factor, y):\n    raise ValueError\n"), cpp(LOOP)]
    for solution in bad:
        await evaluate(solution, "full")
    judge, zygote = _judge_pid(), _zygote()

    def counts() -> list[int]:
        return [_descriptors(judge), _descriptors(zygote), len(_children(judge)), len(_children(zygote))]

    before = counts()
    for _ in range(5):
        for solution in bad:
            await evaluate(solution, "full")
    # The next worker is started after the answer, so that a few come and go; a leak would be one an evaluation.
    growth = [now - then for now, then in zip(counts(), before, strict=True)]
    assert max(growth) < 5 * len(bad), growth


def _judge_pid() -> int:
    own = [pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()]
    (judge,) = [pid for pid in own if b"toolkits.core.judge\0" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return int(judge)


def _zygote() -> int:
    (zygote,) = [pid for pid in _children(_judge_pid()) if "judge.zygote" in _text(Path(f"/proc/{pid}/cmdline"))]
    return zygote


def _text(path: Path) -> str:
    """What a file of /proc holds; nothing once the process is gone."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _end(pids: list[int]) -> None:
    """Kill them, and wait until they are dead."""
    for pid in pids:
        os.kill(pid, 9)
    while any(started_at(pid) for pid in pids):
        pass


def _descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))
