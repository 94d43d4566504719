"""Child process that attacks the sandbox as a solution would, through a real zygote and real workers; prints JSON.

python -P -m toolkits.core.judge.probe

Nothing is taken on trust: what is to be out of reach is laid out here, and it is seen whether a worker reaches it.
"""

import json
import os
import socket
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from toolkits.core.builds import write_sources
from toolkits.core.errors import LabError
from toolkits.core.judge import attempts
from toolkits.core.judge.workers import Worker, WorkerFailure
from toolkits.core.judge.zygotes import Zygote, default_cpu, start_zygote
from toolkits.core.parent import die_with_parent, lives
from toolkits.core.process import started_at
from toolkits.core.schema import CompileResult, Solution

MARK = "kernel-lab probe: "
ENDLESS_S = 0.5
"""Wall time that an endless solution gets before it is ended."""
FORK_PATIENCE_S = 5.0
TRY = """
import json, torch
import attempts

def run():
    pass

about = {"torch": torch.__version__, "threads": torch.get_num_threads()}
print(MARK + json.dumps({"findings": attempts.findings(**LAID_OUT), "about": about}), flush=True)
"""
ENDLESS = """
import os, time

try:
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        time.sleep(600)
except OSError:
    pass
while True:
    pass
"""
FORKING = """
import os, threading, time

def fork_again():
    while True:
        try:
            if os.fork() == 0:
                os._exit(0)
            os.wait()
        except OSError:
            pass
        time.sleep(0.01)

def run():
    pass

try:
    if os.fork() == 0:
        os._exit(0)
    os.wait()
except OSError:
    print(REFUSED, flush=True)
threading.Thread(target=fork_again, daemon=True).start()
"""


def main() -> None:
    die_with_parent()
    zygote = start_zygote(sys.executable, default_cpu())
    try:
        answer = _attempts(zygote)
        answer["findings"] |= {"wall_time": _endless(zygote), "processes_timed": _forking(zygote)}
        print(json.dumps(answer | {"core": zygote.cpu, "sandbox": zygote.sandbox()}))  # noqa: T201 - the answer
    finally:
        zygote.close()


def _attempts(zygote: Zygote) -> dict[str, Any]:
    """What a worker came to that tried everything, and what it says of itself."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        laid_out = {
            "port": listener.getsockname()[1],
            "tmp_file": _open_file(stack, Path(tempfile.gettempdir())),
            "home_file": _open_file(stack, Path(os.environ.get("HOME") or os.devnull)),
            "pid": os.getpid(),
            "born": started_at(os.getpid()),
            "uid": os.getuid(),
        }
        text = f"MARK, LAID_OUT = {MARK!r}, {laid_out!r}\n{TRY}"
        worker = stack.enter_context(_worker(zygote))
        _load(worker, {"main.py": text, "attempts.py": Path(attempts.__file__).read_text(encoding="utf-8")})
        said = worker.output().partition(MARK)[2].partition("\n")[0]
        answer: dict[str, Any] = json.loads(said)
        return answer


def _open_file(stack: ExitStack, folder: Path) -> str:
    """A file that anybody may read, as most of a home are; none where the folder cannot be written."""
    try:
        fd, name = tempfile.mkstemp(dir=folder, prefix=".kernel-lab-probe-")
    except OSError:
        return ""
    stack.callback(os.unlink, name)
    os.fchmod(fd, 0o644)
    os.close(fd)
    return name


def _endless(zygote: Zygote) -> attempts.Finding:
    """Whether a solution that never returns is ended, with a process that fled from its session."""
    with _worker(zygote) as worker:
        try:
            _load(worker, {"main.py": ENDLESS}, ENDLESS_S)
        except WorkerFailure as failure:
            family = {worker.pid} | worker.company()
            worker.kill()
            left = [pid for pid in family if lives(pid)]
            ended = failure.cause == "time_limit" and not left
            return ended, f"{failure.cause} after {ENDLESS_S:g} s, {len(left)} of {len(family)} processes left"
    return False, "an endless loop ended by itself"


def _forking(zygote: Zygote) -> attempts.Finding:
    """Whether no process can be made once the judge says so, as it does for timing."""
    with _worker(zygote) as worker:
        try:
            _load(worker, {"main.py": f"REFUSED = {MARK!r}\n{FORKING}"})
        except WorkerFailure as failure:
            return False, failure.detail
        if MARK in worker.output():
            return True, "none at all, not even for torch.compile"
        worker.forbid_processes()
        deadline = time.monotonic() + FORK_PATIENCE_S
        while time.monotonic() < deadline:
            if worker.asked_for_process():
                return True, "refused while timed"
            time.sleep(0.01)
    return False, "nobody asks the judge: seccomp's listener is needed, kernel 5.5"


@contextmanager
def _worker(zygote: Zygote) -> Generator[Worker]:
    never, end = os.pipe()
    worker = Worker(zygote, lambda: False, never).arrive()
    try:
        yield worker
    finally:
        worker.close()
        for fd in (never, end):
            os.close(fd)


def _load(worker: Worker, sources: dict[str, str], timeout_s: float = 60.0) -> None:
    """Load as a Python solution; its module runs at once."""
    solution = Solution(task="probe", toolkit="python", entry_point="main.py::run", sources=sources)
    with tempfile.TemporaryDirectory() as folder:
        write_sources(Path(folder), sources)
        build = CompileResult(ok=True, solution=solution.id, toolkit="python", loads_as="python", artifact=Path(folder))
        worker.load(solution, build, timeout_s)


if __name__ == "__main__":
    try:
        main()
    except LabError as error:
        sys.exit(f"{error}")
