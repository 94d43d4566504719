"""What holds a solution on this machine: each protection as an attack on it went, and the remedy where one got through.

Knows no workspace and no terminal. The attacks run in a child, which loads torch.
"""

import json
import os
import platform
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from toolkits.core import process, sandbox
from toolkits.core.compiler import Compiler, enclosed, environment, name_inside
from toolkits.core.device import lease
from toolkits.core.schema import Record

PROBE_LIMIT_S = 180.0
BOX = "this needs a box: see the sandbox's remedy"
LIMITS = "a limit of the kernel does not hold here: please report this, with `kernel-lab doctor --json`"
SECCOMP = "a kernel with CONFIG_SECCOMP_FILTER, 5.5 or newer; in a container, one whose profile allows seccomp"
PROTECTIONS = {
    "network": ("no network", BOX),
    "system": ("read-only system", BOX),
    "tmp": ("private /tmp", BOX),
    "home": ("home hidden", BOX),
    "processes_seen": ("no other process seen", BOX),
    "user": ("another user", "run kernel-lab as root; in a box it is no great loss"),
    "rights": ("no capability", "run kernel-lab as another user than root, or with a box"),
    "memory": ("memory", LIMITS),
    "processes": ("processes, threads", "the kernel does not count root's: run kernel-lab as another user"),
    "file_size": ("file size", LIMITS),
    "open_files": ("open files", LIMITS),
    "wall_time": ("CPU and wall time", LIMITS),
    "seccomp": ("filtered system calls", SECCOMP),
    "processes_timed": ("no process while timed", SECCOMP),
}
"""Name of an attempt -> what it attacks, and what to do when it gets through."""
OPTIONAL = ("user",)
"""Without these a solution is still held."""


class Check(Record):
    """One thing that was tried."""

    area: str
    name: str
    state: Literal["ok", "missing", "note"]
    """missing: something needed does not work. note: it works less well, or for information."""
    seen: str
    remedy: str = ""


async def checks() -> list[Check]:
    """The mechanism, each protection, and the Python that solutions run in."""
    found = sandbox.describe()
    bwrap = Path(sandbox.mechanism().bwrap)
    mechanism = Check(
        area="sandbox",
        name="mechanism",
        state="missing" if found["missing"] else "ok",
        seen=f"limits only: {found['missing']}" if found["missing"] else f"bwrap, {_shown(bwrap)}",
        remedy=found["remedy"],
    )
    kernel = Check(area="sandbox", name="kernel", state="ok", seen=f"{platform.system()} {os.uname().release}")
    return [mechanism, kernel, await _compiler(), *await _probed()]


def _shown(program: Path) -> str:
    """On one line: of the package's program the end says enough."""
    return f".../{'/'.join(program.parts[-4:])}" if len(program.parts) > 5 else str(program)


async def _probed() -> list[Check]:
    """In turn with whoever times something: an attack keeps the same core busy."""
    try:
        async with lease():
            return await _attacked()
    except OSError as error:
        seen, remedy = f"cannot be had: {error}", "set TMPDIR to a folder that you may write, the same for every server"
        return [Check(area="judge", name="device lease", state="missing", seen=seen, remedy=remedy)]


async def _attacked() -> list[Check]:
    done = await process.run(
        [sys.executable, "-P", "-m", "toolkits.core.judge.probe"],
        cwd=Path("/"),
        timeout_s=PROBE_LIMIT_S,
        env={name: os.environ[name] for name in ("PATH", "HOME", "TMPDIR") if name in os.environ},
    )
    last = done.output.strip().rpartition("\n")[2]
    if done.returncode != 0:
        ending = "did not end in time" if done.returncode is None else f"ended with {done.returncode}: {last}"
        remedy = "install torch and numpy into this Python; then run the probe by hand: " + " ".join(_probe_command())
        return [Check(area="judge", name="worker", state="missing", seen=f"the probe {ending}", remedy=remedy)]
    answer: dict[str, Any] = json.loads(last)
    return [*_protections(answer["findings"]), *_worker(answer)]


def _probe_command() -> list[str]:
    return ["python", "-P", "-m", "toolkits.core.judge.probe"]


def _protections(findings: Mapping[str, tuple[bool, str]]) -> list[Check]:
    """One check a protection, in the order of the table; what could not be tried is no protection."""
    return [_protection(name, findings.get(name)) for name in PROTECTIONS]


def _protection(name: str, finding: tuple[bool, str] | None) -> Check:
    what, remedy = PROTECTIONS[name]
    if finding is None:
        return Check(
            area="sandbox",
            name=what,
            state="note",
            seen="not tried: no file could be laid out there",
            remedy="set HOME and TMPDIR to folders that you may write",
        )
    holds, seen = finding
    lost = "note" if name in OPTIONAL else "missing"
    return Check(area="sandbox", name=what, state="ok" if holds else lost, seen=seen, remedy="" if holds else remedy)


def _worker(answer: dict[str, Any]) -> list[Check]:
    about, python = answer["about"], platform.python_version()
    return [
        Check(
            area="judge",
            name="python worker",
            state="ok",
            seen=f"Python {python}, torch {about['torch']}, {about['threads']} thread, on core {answer['core']}",
        ),
        _holding(answer["sandbox"]),
    ]


def _holding(sandbox_of_workers: str) -> Check:
    """What a record will say: a worker may be refused entry to a box that was built."""
    boxed = sandbox_of_workers.startswith("bwrap")
    remedy = sandbox.describe()["remedy"] or "a kernel, or a container, where a process may enter namespaces (setns)"
    return Check(
        area="judge",
        name="host.sandbox",
        state="ok" if boxed else "missing",
        seen=sandbox_of_workers,
        remedy="" if boxed else remedy,
    )


async def _compiler() -> Check:
    """Whether a source can include what lies outside its folder; a compiler that does not work at all says so here."""
    compiler = Compiler()
    if compiler.missing():
        return Check(
            area="sandbox", name="compiler in a box", state="missing", seen="no compiler", remedy=compiler.missing()
        )
    with tempfile.NamedTemporaryFile(suffix=".h") as secret, tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        source = f'#if __has_include("{secret.name}")\n#error visible\n#endif\nextern "C" int one() {{ return 1; }}\n'
        (work / "probe.cpp").write_text(source, encoding="utf-8")
        command = [compiler.path(), "-shared", "-fPIC", "probe.cpp", "-o", "probe.so"]
        done = await process.run(
            enclosed(command, work, "."), cwd=work, timeout_s=60, env=environment(name_inside(work))
        )
        built = done.returncode == 0 and (work / "probe.so").exists()
    seen, remedy = "sees its own folder only", ""
    if not built:
        visible = "#error visible" in done.output
        seen = f"reads {secret.name}" if visible else f"builds nothing: {done.output.strip()[-300:]}"
        remedy = BOX if visible else "make this compiler work, or set CXX to one that does"
    return Check(area="sandbox", name="compiler in a box", state="ok" if built else "missing", seen=seen, remedy=remedy)
