"""What a solution can see and use: nothing but its own; and an honest one misses nothing."""

import os
import shutil
from pathlib import Path

import pytest

from tests.toolkits.conftest import LOOP, Evaluate, cpp, python
from toolkits.core import sandbox
from toolkits.core.schema import Solution, Status, Task
from toolkits.core.toolkit import get_toolkit

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not sandbox.mechanism().bwrap, reason=sandbox.mechanism().why_not or "boxes work"),
]
NUMBERS = "import os, socket, torch"


def _rest_of_the_checkout() -> list[Path]:
    root = Path(sandbox.__file__).parents[2]
    return [root / name for name in ("toolkits", "mcp_server", "kernels", "lessons", "tests", ".git")]


def _trying(body: str) -> Solution:
    """A right solution that does `body` first, where any exception is its end."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return python(f"{NUMBERS}\ndef scale(x, factor, y):\n{lines}    torch.mul(x, factor, out=y)\n")


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("socket.create_connection(('127.0.0.1', 80), timeout=1)", "Network is unreachable|refused"),
        ("os.listdir('/root')", "Permission denied|No such file"),
        ("os.listdir('/work')", "Permission denied|No such file|Errno"),
        ("open('/etc/passwd').read()", "No such file"),
        ("open('/usr/planted', 'w')", "Read-only file system"),
        ("open('/planted', 'w')", "Read-only file system|Permission denied"),
        ("os.setuid(0)", "Operation not permitted|Invalid argument"),
        pytest.param(
            *("os.sched_setaffinity(1, {0})", "not permitted"),
            marks=pytest.mark.skipif(os.geteuid() != 0, reason="the box's idle process is the same user's"),
        ),
        ("os.setpriority(os.PRIO_PROCESS, 0, -5)", "Permission denied|not permitted"),
        ("with open('big', 'wb') as file: file.truncate(1 << 40)", "File too large|Invalid argument"),
        ("torch.empty(1 << 36, dtype=torch.uint8)", "alloc|memory"),
        ("kept = [open('/dev/null') for _ in range(2000)]", "Too many open files"),
    ],
)
async def test_what_is_not_the_solutions_is_out_of_reach(evaluate: Evaluate, body: str, error: str) -> None:
    result = await evaluate(_trying(body))
    assert result.status is Status.RUNTIME_ERROR and result.cause in {"exception", "oom"}, result.detail
    assert any(sign in result.detail for sign in error.split("|")), result.detail


async def test_no_process_but_its_own_is_seen(evaluate: Evaluate) -> None:
    seen = "seen = [name for name in os.listdir('/proc') if name.isdigit()]\nassert len(seen) == 2, seen"
    result = await evaluate(_trying(seen))
    assert result.status is Status.PASSED, result.detail


async def test_neither_the_reference_nor_a_build_is_found(evaluate: Evaluate, task: Task, tmp_path: Path) -> None:
    hidden = [str(task.folder / "reference.py"), str(tmp_path / "builds"), *map(str, _rest_of_the_checkout())]
    look = f"found = [path for path in {hidden!r} if os.path.exists(path)]\nassert not found, found"
    result = await evaluate(_trying(look))
    assert result.status is Status.PASSED, result.detail


async def test_processes_are_counted(evaluate: Evaluate) -> None:
    many = "import threading\nfor _ in range(400): threading.Thread(target=threading.Event().wait, daemon=True).start()"
    result = await evaluate(_trying(many))
    assert (result.status, result.cause) == (Status.RUNTIME_ERROR, "exception"), result.detail
    assert "can't start new thread" in result.detail


async def test_what_one_solution_writes_the_next_does_not_find(evaluate: Evaluate) -> None:
    leave = "open('/tmp/answer', 'w').write('42')\nopen('/dev/shm/answer', 'w').write('42')"
    assert (await evaluate(_trying(leave))).status is Status.PASSED
    look = "assert not os.path.exists('/tmp/answer') and not os.path.exists('/dev/shm/answer')"
    result = await evaluate(_trying(look))
    assert result.status is Status.PASSED, result.detail


async def test_honest_solutions_pass_and_the_record_says_what_held_them(evaluate: Evaluate) -> None:
    for honest in (
        cpp(LOOP),
        _trying("import tempfile, encodings.idna, this, pty\ntempfile.TemporaryFile().write(b'x')"),
    ):
        result = await evaluate(honest)
        assert result.status is Status.PASSED, result.detail
        assert result.host["sandbox"].startswith("bwrap")


def test_the_description_names_the_mechanism() -> None:
    assert sandbox.describe()["mechanism"].startswith("bwrap")


async def test_a_compiler_error_shows_no_file_that_is_not_the_solutions(task: Task, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the password is sesame\n", encoding="utf-8")
    solution = cpp(LOOP, sources={"main.cpp": f'#include "{secret}"\n#include "/etc/passwd"\n'})
    built = await get_toolkit("cpp").compile(task, solution, tmp_path / "builds")
    assert not built.ok and "No such file" in built.log
    assert "sesame" not in built.log and "root:" not in built.log


async def test_what_reads_a_built_library_sees_no_more_than_the_compiler(
    task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, tools = tmp_path / "secret", tmp_path / "tools" / "bin"
    secret.write_text("sesame", encoding="utf-8")
    secret.chmod(0o666)
    tools.mkdir(parents=True)
    spy = f'#!/bin/sh\ncat {secret} >/dev/null && echo read >>{secret}\nexec {shutil.which("nm")} "$@"\n'
    (tools / "nm").write_text(spy, encoding="utf-8")
    (tools / "nm").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    built = await get_toolkit("cpp").compile(task, cpp(LOOP), tmp_path / "builds")
    assert built.ok, built.log
    assert secret.read_text(encoding="utf-8") == "sesame"


async def test_a_compiler_that_is_found_through_a_link_works(
    task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "links").mkdir()
    for program in ("g++", "nm"):
        (tmp_path / "links" / program).symlink_to(str(shutil.which(program)))
    monkeypatch.setenv("PATH", f"{tmp_path / 'links'}:{os.environ['PATH']}")
    built = await get_toolkit("cpp").compile(task, cpp(LOOP), tmp_path / "builds")
    assert built.ok and built.command[0] == str(tmp_path / "links" / "g++"), built.log
