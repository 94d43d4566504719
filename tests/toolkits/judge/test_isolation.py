"""Solutions that would hang the judge, hide memory from it or steer its words: each is the solution's own fault."""

from pathlib import Path

import pytest

from tests.toolkits.conftest import LOOP, Evaluate, cpp, python
from tests.toolkits.judge.test_guard import alone
from toolkits.core.errors import HarnessError
from toolkits.core.judge import boxes, memory
from toolkits.core.judge.workers import WorkerFailure
from toolkits.core.sandbox import mechanism
from toolkits.core.schema import Solution, Status, Task, Workload

pytestmark = pytest.mark.anyio

CHANNEL = """
import array, json, os, socket, stat, struct, sys, time, torch

def channel():
    found = [fd for fd in range(3, 64) if os.path.exists(f"/proc/self/fd/{fd}") and stat.S_ISSOCK(os.fstat(fd).st_mode)]
    return socket.socket(fileno=os.dup(found[0]))

def frame():
    frame = sys._getframe()
    while "request" not in frame.f_locals:
        frame = frame.f_back
    return frame.f_locals

def reply(request, **said):
    channel().send(json.dumps(said | {"id": request["id"], "nonce": request["nonce"]}).encode())
"""
LINGERS = """
listener, near = socket.socket(), socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()
near.connect(listener.getsockname())
far, near_too = listener.accept()[0], near
near.setblocking(False)
try:
    while True: near.send(bytes(1 << 16))
except BlockingIOError: pass
near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 1000))
socket.send_fds(channel(), [b"junk"], [near.fileno()])
near.close()
time.sleep(60)
"""
PEEKS = """
def answer_for_ever():
    line, request, calls = channel(), frame()["request"], frame()["calls"]
    reply(request, cpu_ns=10**12)
    line.setsockopt(socket.SOL_SOCKET, 42, 0)  # SO_PEEK_OFF: each look goes on where the last one ended
    while True:
        request = json.loads(line.recv(1 << 17, socket.MSG_PEEK))
        if request["id"] > known:
            calls[request["slot"]]["call"](request["scalars"])
            reply(request, cpu_ns=10**12)

known = 0

def scale(x, factor, y):
    global known
    torch.mul(x, factor, out=y)
    if x.shape[1] == 4096 and not known:
        known = frame()["request"]["id"]
        answer_for_ever()
"""


def _hostile(body: str) -> Solution:
    """A right solution that does `body` first."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return python(f"{CHANNEL}\ndef scale(x, factor, y):\n{lines}    torch.mul(x, factor, out=y)\n")


async def _next_one_passes(evaluate: Evaluate) -> None:
    result = await evaluate(cpp(LOOP))
    assert result.status is Status.PASSED, result.detail


async def test_a_socket_that_is_slow_to_close_does_not_hang_the_judge(evaluate: Evaluate) -> None:
    """The judge would be who closes it, and would wait for its unsent bytes."""
    result = await evaluate(_hostile(LINGERS))
    assert result.cause in ("exception", "time_limit"), result
    await _next_one_passes(evaluate)


async def test_no_descriptor_can_be_sent(evaluate: Evaluate) -> None:
    """Memory that lies between two sockets belongs to no process, and would be counted nowhere."""
    result = await evaluate(_hostile("socket.send_fds(socket.socketpair()[0], [b'x'], [os.memfd_create('m')])"))
    assert result.cause == "exception" and "PermissionError" in result.detail, result


async def test_requests_that_are_answered_and_not_taken_do_not_hang_the_judge(evaluate: Evaluate) -> None:
    many = [Workload(uuid=f"wide{number}", axes={"rows": 64, "columns": 4096}) for number in range(100)]
    result = await evaluate(python(CHANNEL + PEEKS), "full", workloads=many, content_hash="scale-many")
    assert (result.status, result.cause) == (Status.RUNTIME_ERROR, "exit_early"), result.detail
    assert "unread" in result.detail
    await _next_one_passes(evaluate)


@pytest.mark.parametrize("error", ["[[[1]]]", "{'a': 1}", "1e400", "None"])
async def test_an_error_that_is_no_text_is_an_exception(evaluate: Evaluate, error: str) -> None:
    result = await evaluate(_hostile(f"reply(frame()['request'], error={error})"))
    assert (result.status, result.cause) == (Status.RUNTIME_ERROR, "exception"), result
    assert "no text" in result.detail


async def test_memory_that_comes_back_with_a_workers_end_was_the_solutions(
    task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine runs short; what it has when the worker is dead says whose fault it was."""
    limit = 700 << 20
    for name in ("MOST_BYTES", "LEAST_BYTES"):
        monkeypatch.setattr(memory, name, limit)
    for back, error in ((limit, WorkerFailure), (0, HarnessError)):
        async with alone(task, tmp_path, "import time\ntime.sleep(60)") as lone:
            left = iter([memory.available(), 100 << 20, 100 << 20, (100 << 20) + back])
            monkeypatch.setattr(memory, "available", lambda left=left: next(left))
            with pytest.raises(error) as failure:
                lone.load()
            assert failure.value.cause in ("oom", "out_of_memory")
            monkeypatch.undo()
            for name in ("MOST_BYTES", "LEAST_BYTES"):
                monkeypatch.setattr(memory, name, limit)


async def test_files_that_are_empty_count_too(task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not mechanism().bwrap:
        pytest.skip(f"without a box the folder is the machine's own: {mechanism().why_not}")
    monkeypatch.setattr(boxes, "INODE_BYTES", 1 << 20)
    monkeypatch.setattr(memory, "MOST_BYTES", 1 << 30)
    endless = "import os\nn = 0\nwhile True:\n    os.mknod(f'/dev/shm/{n}')\n    n += 1\n"
    async with alone(task, tmp_path, endless) as lone:
        with pytest.raises(WorkerFailure, match="are allowed"):
            lone.load()


async def test_a_box_has_no_other_folder_to_fill(evaluate: Evaluate) -> None:
    mounts = "raise ValueError([line.split()[5] for line in open('/proc/self/mountinfo') if line.split()[4] == '/dev'])"
    result = await evaluate(_hostile(mounts))
    assert not mechanism().bwrap or "'ro," in result.detail, result.detail
