"""What a solution with bad intentions tries, inside a worker: each attempt says whether it was stopped, and how.

Standard library only, and nothing of this package: the text of this file is itself loaded as a solution.
"""

import ctypes
import mmap
import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

Finding = tuple[bool, str]
"""Stopped, and what was seen."""

ADDRESS_BYTES, FILE_BYTES, THREADS, OPEN_FILES = 1 << 40, 16 << 30, 1000, 4000
"""Far more than any worker may have."""
STACK_BYTES = 128 << 10
_NO_RESERVE = 0x4000
_CALLS = {"x86_64": {"ptrace": 101, "unshare": 272}, "aarch64": {"ptrace": 117, "unshare": 97}}
_USER_NAMESPACE = 0x10000000


def findings(port: int, home_file: str, tmp_file: str, pid: int, born: int, uid: int) -> dict[str, Finding]:
    """All attempts on what the caller laid out: a listener, files in its home and /tmp, its own process and user.

    Where it could lay out no file, nothing can be found.
    """
    attempts: dict[str, Callable[[], Finding]] = {
        "network": lambda: _connect(port),
        "system": _write_system,
        "tmp": lambda: _read(tmp_file),
        "home": lambda: _read(home_file),
        "processes_seen": lambda: _see(pid, born),
        "user": lambda: (os.getuid() != uid, f"uid {os.getuid()}"),
        "rights": _rights,
        "memory": _map,
        "processes": _start_threads,
        "file_size": _grow_file,
        "open_files": _open_files,
        "seccomp": _forbidden_calls,
    }
    unknown = {name for name, file in (("tmp", tmp_file), ("home", home_file)) if not file}
    return {name: _tried(attempt) for name, attempt in attempts.items() if name not in unknown}


def _tried(attempt: Callable[[], Finding]) -> Finding:
    try:
        return attempt()
    except (OSError, MemoryError, RuntimeError) as error:
        return True, getattr(error, "strerror", None) or str(error) or type(error).__name__


def _connect(port: int) -> Finding:
    socket.create_connection(("127.0.0.1", port), timeout=2).close()
    return False, "reached a listener on this machine"


def _write_system() -> Finding:
    """Every folder must refuse; how the first one did is told."""
    refusals: list[str] = []
    for folder in ("/usr", "/etc", "/var/tmp", str(Path(os.__file__).parent)):
        path = Path(folder) / f".kernel-lab-probe-{os.getpid()}"
        try:
            path.touch(exist_ok=False)
        except OSError as error:
            refusals.append(error.strerror or str(error))
            continue
        path.unlink()
        return False, f"wrote a file into {folder}"
    return True, refusals[0]


def _read(file: str) -> Finding:
    Path(file).read_bytes()
    return False, f"read {file}"


def _see(pid: int, born: int) -> Finding:
    """In other namespaces the same number is another process: born when tells."""
    stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    if int(stat.rpartition(")")[2].split()[19]) == born:
        return False, f"sees process {pid} outside"
    return True, "only its own"


def _rights() -> Finding:
    status = _status()
    held = int(status["CapEff"], 16) | int(status["CapPrm"], 16)
    if held or status["NoNewPrivs"] != "1":
        return False, f"capabilities {held:x}, NoNewPrivs {status['NoNewPrivs']}"
    return True, "no capability, and none to come by"


def _map() -> Finding:
    mmap.mmap(-1, ADDRESS_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE).close()
    return False, f"mapped {ADDRESS_BYTES >> 30} GB"


def _start_threads() -> Finding:
    """Threads count as processes do, and end at once when told."""
    done, started = threading.Event(), 0
    before = threading.stack_size(STACK_BYTES)
    try:
        for _ in range(THREADS):
            threading.Thread(target=done.wait, daemon=True).start()
            started += 1
    except RuntimeError:
        return True, f"stopped after {started}"
    finally:
        threading.stack_size(before)
        done.set()
    return False, f"{started} threads at once"


def _grow_file() -> Finding:
    path = Path(f".kernel-lab-probe-{os.getpid()}")
    try:
        with path.open("wb") as file:
            file.truncate(FILE_BYTES)
    finally:
        path.unlink(missing_ok=True)
    return False, f"made a file of {FILE_BYTES >> 30} GB"


def _open_files() -> Finding:
    kept: list[int] = []
    try:
        kept += (os.open(os.devnull, os.O_RDONLY) for _ in range(OPEN_FILES))
    except OSError as error:
        return True, f"{error.strerror}"
    finally:
        for fd in kept:
            os.close(fd)
    return False, f"{OPEN_FILES} files open at once"


def _forbidden_calls() -> Finding:
    """Neither is needed by a kernel: to be looked into by its parent, and to make a namespace."""
    calls = _CALLS.get(os.uname().machine)
    if not calls or _status()["Seccomp"] != "2":
        return False, "no filter of system calls"
    libc = ctypes.CDLL(None, use_errno=True)
    for name, argument in (("unshare", _USER_NAMESPACE), ("ptrace", 0)):
        if libc.syscall(calls[name], argument, 0, 0, 0) == 0:
            return False, f"{name} is allowed"
    return True, "ptrace and unshare refused"


def _status() -> dict[str, str]:
    fields: dict[str, str] = {}
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            fields[name] = value.strip()
    return fields
