"""A worker makes no process while it is timed, looks into none, and does not use up the machine's memory."""

import os
import struct
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.toolkits.conftest import LOOP, Evaluate, cpp, python
from toolkits.core.errors import HarnessError
from toolkits.core.judge import memory, seccomp, zygotes
from toolkits.core.judge.arena import Inputs, Outputs
from toolkits.core.judge.guard import MOST_PROCESSES
from toolkits.core.judge.workers import Worker, WorkerFailure
from toolkits.core.judge.zygotes import Zygote, default_cpu
from toolkits.core.sandbox import Mechanism, mechanism
from toolkits.core.schema import CompileResult, Solution, Stage, Status, Task
from toolkits.core.toolkit import get_toolkit

pytestmark = pytest.mark.anyio

TIMED = "rows == 64 && columns == 4096"
"""The size that is timed; the conftest's task has it as no other."""
HEADERS = "".join(
    f"#include <{name}>\n" for name in ("pthread.h", "sched.h", "spawn.h", "sys/wait.h", "unistd.h", "cstring")
)
WAYS = {
    "fork": "pid_t pid = fork(); if (pid == 0) _exit(0); if (pid > 0) waitpid(pid, nullptr, 0);",
    "vfork": "pid_t pid = vfork(); if (pid == 0) _exit(0); if (pid > 0) waitpid(pid, nullptr, 0);",
    "posix_spawn": 'pid_t pid; char n[] = "true"; char* a[] = {n, nullptr}; char* e[] = {nullptr};'
    ' if (posix_spawn(&pid, "/bin/true", nullptr, nullptr, a, e) == 0) waitpid(pid, nullptr, 0);',
    "clone": "static char stack[65536]; int (*f)(void*) = [](void*) { return 0; };"
    " int pid = clone(f, stack + 65536, CLONE_VM | CLONE_SIGHAND | CLONE_FILES | SIGCHLD, nullptr);"
    " if (pid > 0) waitpid(pid, nullptr, __WALL);",
    "thread": "pthread_t t; void* (*f)(void*) = [](void*) -> void* { pid_t pid = fork(); if (pid == 0) _exit(0);"
    " if (pid > 0) waitpid(pid, nullptr, 0); return nullptr; };"
    " pthread_create(&t, nullptr, f, nullptr); pthread_join(t, nullptr);",
}
REFUSED = {
    "ptrace": (101, 0, 0, 0, 0),
    "process_vm_readv": (310, os.getpid(), 0, 0, 0, 0, 0),
    "pidfd_getfd": (438, 0, 0, 0),
    "perf_event_open": (298, 0, 0, -1, -1, 0),
    "io_uring_setup": (425, 1, 0),
    "bpf": (321, 0, 0, 0),
    "userfaultfd": (323, 0),
    "unshare": (272, 0),
    "setns": (308, 0, 0),
    "mount": (165, 0, 0, 0, 0, 0),
    "keyctl": (250, 0, -3, 0),
    "shmget": (29, 0, 4096, 0o1600),
    "setpriority": (141, 0, 0, 5),
    "sched_setscheduler": (144, 0, 5, 0),
    "new user namespace": (56, 0x10000000 | 17, 0, 0, 0, 0),
    "new thread in a new namespace": (56, 0x40000000 | 0x10F00, 0, 0, 0, 0),
    "vsock": (41, 40, 1, 0),
}
"""Numbers of x86-64, with arguments."""


def _with_way(code: str, when: str = TIMED) -> Solution:
    text = cpp(f"if ({when}) {{ {code} }}\n{LOOP}")
    return text.model_copy(update={"sources": {"main.cpp": HEADERS + text.sources["main.cpp"]}})


def _says(expression: str, before: str = "") -> Solution:
    """A solution that fails with the value of an expression as its message."""
    return python(f"import ctypes, os, torch\n{before}\ndef scale(x, factor, y):\n    raise ValueError({expression})\n")


@pytest.mark.parametrize("way", WAYS)
async def test_a_process_that_is_wanted_in_every_call_is_foul_play(evaluate: Evaluate, way: str) -> None:
    result = await evaluate(_with_way(WAYS[way]), "full")
    assert (result.status, result.stage, result.cause) == (Status.REWARD_HACK, Stage.TIMING, "extra_process"), result
    assert "while it was timed" in result.detail and "threads" in result.hint


async def test_a_call_that_fails_for_want_of_a_process_is_foul_play_too(evaluate: Evaluate) -> None:
    lines = "    if x.shape[1] == 4096: subprocess.run(['true'], check=True)\n    torch.mul(x, factor, out=y)\n"
    result = await evaluate(python(f"import subprocess, torch\ndef scale(x, factor, y):\n{lines}"), "full")
    assert (result.status, result.cause) == (Status.REWARD_HACK, "extra_process"), result


@pytest.mark.parametrize("way", WAYS)
async def test_processes_may_be_made_outside_of_the_timed_calls(evaluate: Evaluate, way: str) -> None:
    first = f"static bool timed = false; if (!timed) {{ {WAYS[way]} }} timed = {TIMED};"
    result = await evaluate(_with_way(first, "true"), "full")
    assert result.status is Status.PASSED, result.detail


async def test_a_solution_may_build_a_library_when_it_is_loaded(evaluate: Evaluate) -> None:
    text = (
        "import ctypes, subprocess\n"
        "with open('a.c', 'w') as file:\n"
        "    file.write('void s(float* x, float f, float* y, long n) { while (n--) y[n] = x[n] * f; }')\n"
        "subprocess.run(['gcc', '-O2', '-shared', '-fPIC', '-o', 'a.so', 'a.c'], check=True)\n"
        "library = ctypes.CDLL('./a.so')\n"
        "def scale(x, factor, y):\n"
        "    library.s(ctypes.c_void_p(x.data_ptr()), ctypes.c_float(factor), ctypes.c_void_p(y.data_ptr()),"
        " ctypes.c_long(y.numel()))\n"
    )
    result = await evaluate(python(text), "full")
    assert result.status is Status.PASSED, result.detail


async def test_a_child_that_is_no_more_is_no_company(evaluate: Evaluate) -> None:
    body = "if not os.fork():\n    os._exit(0)\nif not os.fork():\n    os.fork()\n    os._exit(0)\nos.wait()\n"
    scale = "def scale(x, factor, y):\n    torch.mul(x, factor, out=y)\n"
    wait = "while any(c for c in open(f'/proc/self/task/{os.getpid()}/children').read().split() if alive(c)): pass\n"
    alive = "def alive(pid): return open(f'/proc/{pid}/stat').read().rpartition(') ')[2][0] != 'Z'\n"
    result = await evaluate(python(f"import os, torch\n{alive}{body}{wait}{scale}"), "full")
    assert result.status is Status.PASSED, result.detail


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are those of x86-64")
@pytest.mark.parametrize("name", REFUSED)
async def test_a_call_that_no_kernel_needs_is_refused(evaluate: Evaluate, name: str) -> None:
    arguments = ", ".join(f"ctypes.c_long({number})" for number in REFUSED[name])
    call = f"(libc.syscall({arguments}), ctypes.get_errno())"
    result = await evaluate(_says(call, "libc = ctypes.CDLL(None, use_errno=True)"))
    assert "ValueError: (-1, 1)" in result.detail, result.detail


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="only x86-64 has other ways to call")
async def test_the_other_ways_to_call_the_kernel_are_closed(evaluate: Evaluate) -> None:
    x32 = "(libc.syscall(ctypes.c_long(0x40000000 + 57)), ctypes.get_errno())"
    result = await evaluate(_says(x32, "libc = ctypes.CDLL(None, use_errno=True)"))
    assert "ValueError: (-1, 38)" in result.detail, result.detail
    i386 = 'int made = 2; asm volatile("int $0x80" : "+a"(made)); if (made == 0) _exit(0);'
    result = await evaluate(_with_way(i386, "true"))
    assert (result.status, result.cause) == (Status.RUNTIME_ERROR, "signal_31"), result


async def test_a_worker_does_not_hold_the_end_on_which_the_judge_is_asked(evaluate: Evaluate) -> None:
    seen = "import glob\ndef seen():\n    return [os.path.realpath(name) for name in glob.glob('/proc/self/fd/*')]"
    result = await evaluate(_says("seen()", seen))
    assert "socket:" in result.detail and "seccomp" not in result.detail


@pytest.mark.parametrize("end", ["os._exit(3)", "os.kill(os.getpid(), 9)"])
async def test_a_worker_that_ends_while_it_asks_is_blamed_for_its_end(evaluate: Evaluate, end: str) -> None:
    asks = "def ask():\n    while True:\n        if not os.fork(): os._exit(0)\n        os.wait()\n"
    threads = "import threading\nfor _ in range(4): threading.Thread(target=ask, daemon=True).start()"
    result = await evaluate(_says(end, asks + threads))
    assert (result.status, result.cause[:5]) == (Status.RUNTIME_ERROR, "exit_" if "exit" in end else "signa"), result
    assert (await evaluate(cpp(LOOP))).status is Status.PASSED


async def test_the_number_of_processes_is_bounded(evaluate: Evaluate) -> None:
    count = (
        "static int made = 0; pid_t pid; while ((pid = vfork()) > 0) { ++made; waitpid(pid, nullptr, 0); }"
        f" if (pid == 0) _exit(0); if (made != {MOST_PROCESSES}) __builtin_trap();"
    )
    result = await evaluate(_with_way(count, "true"))
    assert result.status is Status.PASSED, result.detail


async def test_a_storm_of_requests_does_not_hold_the_judge(evaluate: Evaluate) -> None:
    storm = (
        "cpu_set_t all; memset(&all, 255, sizeof all); sched_setaffinity(0, sizeof all, &all); pthread_t t;"
        " void* (*f)(void*) = [](void*) -> void* { for (;;) { pid_t pid = vfork(); if (pid == 0) _exit(0); } };"
        " for (int i = 0; i < 8; ++i) pthread_create(&t, nullptr, f, nullptr);"
        " pthread_join(t, nullptr);"
    )
    result = await evaluate(_with_way(storm, "true"))
    assert (result.status, result.cause) == (Status.TIMEOUT, "time_limit"), result


async def test_the_kernel_ends_a_worker_before_the_judge_when_memory_is_used_up(evaluate: Evaluate) -> None:
    result = await evaluate(_says("open('/proc/self/oom_score_adj').read()"))
    assert "ValueError: 1000" in result.detail


async def test_the_record_says_that_processes_are_stopped(evaluate: Evaluate) -> None:
    result = await evaluate(cpp(LOOP))
    assert "no new processes while timed" in result.host["sandbox"]


@pytest.mark.parametrize("body", ["bytearray(1 << 42)", "torch.empty(1 << 42)", "mmap.mmap(-1, 1 << 42)"])
async def test_python_that_gets_no_memory_is_told_so(evaluate: Evaluate, body: str) -> None:
    result = await evaluate(_says(body, "import mmap"))
    assert (result.status, result.cause) == (Status.RUNTIME_ERROR, "oom") and result.hint, result


async def test_cpp_that_gets_no_memory_is_told_so(evaluate: Evaluate) -> None:
    result = await evaluate(cpp("char* volatile far = new char[rows << 40]; y[0] = far[0];"))
    assert (result.status, result.cause) == (Status.RUNTIME_ERROR, "oom"), result
    result = await evaluate(cpp("__builtin_abort();"))
    assert (result.status, result.cause) == (Status.RUNTIME_ERROR, "signal_6"), result


async def test_a_full_folder_is_named(evaluate: Evaluate) -> None:
    if not mechanism().bwrap:
        pytest.skip(f"without a box the folder is the machine's own: {mechanism().why_not}")
    fill = (
        "import contextlib, mmap, os\nhalves = [open(f'/dev/shm/{number}', 'wb') for number in range(3)]\n"
        "def fill():\n    for half in halves: os.posix_fallocate(half.fileno(), 0, 500 << 20)\n"
    )
    result = await evaluate(python(f"{fill}\nfill()\ndef scale(x, factor, y): pass\n"))
    assert result.cause == "exception" and "No space left" in result.detail, result
    touch = (
        "with contextlib.suppress(OSError): fill()\nmore = os.open('/dev/shm/more', os.O_RDWR | os.O_CREAT)\n"
        "os.ftruncate(more, 1 << 26)\nmmap.mmap(more, 1 << 26)[:] = bytes(1 << 26)\n"
    )
    result = await evaluate(python(f"{fill}{touch}def scale(x, factor, y): pass\n"))
    assert (result.cause, "/dev/shm" in result.detail) == ("signal_7", True), result


HOGS = {
    "pages": "keep = []\nwhile True: keep.append(bytearray(b'x') * (32 << 20))",
    "memory files": "import os\nwhile True: os.write(os.memfd_create('m'), bytes(32 << 20))",
    "shared pages": "import mmap\nkeep = []\nwhile True:\n    keep.append(mmap.mmap(-1, 32 << 20))\n"
    "    keep[-1][:] = bytes(32 << 20)",
    "a folder in memory": "n = 0\nwhile True:\n    open(f'/dev/shm/{n}', 'wb').write(bytes(32 << 20))\n    n += 1",
    "a child": "import os\nkeep = []\nif os.fork(): os.wait()\nwhile True: keep.append(bytearray(b'x') * (32 << 20))",
}
FORKS = "import os\nif os.fork() == 0: os._exit(0)\nos.wait()"


@dataclass(frozen=True)
class Lone:
    """A judge's worker in this process, with a Python text to load."""

    worker: Worker
    solution: Solution
    build: CompileResult

    def load(self) -> None:
        self.worker.load(self.solution, self.build)


@asynccontextmanager
async def alone(task: Task, builds: Path, text: str) -> AsyncGenerator[Lone]:
    solution = python(text if "def scale" in text else f"{text}\ndef scale(x, factor, y): pass\n")
    build = await get_toolkit("python").compile(task, solution, builds)
    (never, other), zygote = os.pipe(), Zygote(sys.executable, default_cpu())
    worker = Worker(zygote, lambda: False, never)
    try:
        yield Lone(worker, solution, build)
    finally:
        worker.close()
        zygote.close()
        os.close(never)
        os.close(other)


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "MOST_BYTES", 700 << 20)
    monkeypatch.setattr(memory, "LEAST_BYTES", 700 << 20)


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("what", HOGS)
async def test_a_worker_that_takes_too_much_memory_is_ended(task: Task, tmp_path: Path, what: str) -> None:
    if "folder" in what and not mechanism().bwrap:
        pytest.skip(f"without a box the folder is the machine's own: {mechanism().why_not}")
    async with alone(task, tmp_path, HOGS[what]) as lone:
        with pytest.raises(WorkerFailure, match=r"0\.7 GiB are allowed") as failure:
            lone.load()
    assert failure.value.cause == "oom"


@pytest.mark.usefixtures("little_memory")
async def test_memory_that_grows_from_one_short_call_to_the_next_is_seen(task: Task, tmp_path: Path) -> None:
    grows = "keep = []\ndef scale(x, factor, y): keep.append(bytearray(b'x') * (4 << 20))\n"
    axes = task.correctness[0]
    async with alone(task, tmp_path, grows) as lone:
        with closing(Inputs(task, axes)) as inputs, closing(Outputs(task, axes)) as outputs:
            lone.load()
            lone.worker.bind(0, task, axes, inputs, outputs)
            with pytest.raises(WorkerFailure, match=r"0\.7 GiB are allowed"):
                while True:
                    lone.worker.call(0, {"factor": 1.0}, 2.0)


def test_memory_that_others_use_up_is_not_blamed_on_the_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    ration = memory.Ration()
    monkeypatch.setattr(memory, "available", lambda: 100 << 20)
    with pytest.raises(HarnessError, match=r"this machine has only 0\.1 GiB"):
        ration.excess([os.getpid()], 0)


@pytest.mark.parametrize("box", [True, False])
async def test_processes_are_stopped_with_and_without_a_box(
    task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, box: bool
) -> None:
    if not box:
        monkeypatch.setattr(zygotes, "mechanism", lambda: Mechanism("", "switched off by a test"))
    async with alone(task, tmp_path, FORKS) as lone:
        lone.load()
        assert not lone.worker.asked_for_process()
    async with alone(task, tmp_path, FORKS) as lone:
        lone.worker.forbid_processes()
        with pytest.raises(WorkerFailure, match="PermissionError"):
            lone.load()
        assert lone.worker.asked_for_process()


def test_where_another_listens_already_no_process_can_be_made_at_all() -> None:
    code = (
        "import ctypes, os\nfrom toolkits.core.judge import seccomp\n"
        "ctypes.CDLL(None).prctl(38, 1, 0, 0, 0)\nprint(seccomp.take_filter()[0], seccomp.take_filter()[0])\n"
        "try: os.fork()\nexcept PermissionError: print('no fork')\nimport threading\n"
        "thread = threading.Thread(target=print, args=['a thread'])\nthread.start()\nthread.join()"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines() == [f"{seccomp.LISTENED} {seccomp.REFUSED}", "no fork", "a thread"]


THREAD, PROCESS, NETWORK = 0x3D0F00, 0x1200011, 0x40000011
FILTERED = {
    # name: numbers on x86-64 and aarch64, first argument, answer
    "read": (0, 63, 0, "allow"),
    "clone of a thread": (56, 220, THREAD, "allow"),
    "clone of a process": (56, 220, PROCESS, "ask"),
    "clone into a namespace": (56, 220, NETWORK, "EPERM"),
    "clone3": (435, 435, 0, "ENOSYS"),
    "ptrace": (101, 117, 0, "EPERM"),
    "a socket in the machine": (41, 198, 1, "allow"),
    "a socket to its host": (41, 198, 40, "EPERM"),
}
ANSWERS = {0x7FFF0000: "allow", 0x7FC00000: "ask", 0x50001: "EPERM", 0x50026: "ENOSYS", 0x80000000: "kill"}


@pytest.mark.parametrize("name", FILTERED)
@pytest.mark.parametrize(("column", "machine", "convention"), [(0, "x86_64", 0xC000003E), (1, "aarch64", 0xC00000B7)])
def test_the_filter_answers_alike_on_every_architecture(name: str, column: int, machine: str, convention: int) -> None:
    *numbers, argument, wanted = FILTERED[name]
    code = seccomp.program(machine, 0x7FC00000)
    assert _answered(code, {0: numbers[column], 4: convention, 16: argument}) == wanted
    assert _answered(code, {0: numbers[column], 4: 0x40000003, 16: argument}) == "kill"


def _answered(code: bytes, call: dict[int, int]) -> str:
    """What the kernel's machine for filters makes of a call, given by offsets."""
    at, value = 0, 0
    while True:
        what, then, otherwise, operand = struct.unpack_from("<HBBI", code, at * 8)
        at += 1
        if what == 0x20:
            value = call[operand]
        elif what == 0x05:
            at += operand
        elif what == 0x06:
            return ANSWERS[operand]
        else:
            passed = {0x15: value == operand, 0x35: value >= operand, 0x45: bool(value & operand)}[what]
            at += then if passed else otherwise
