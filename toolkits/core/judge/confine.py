"""What a forked worker does to itself before it meets a solution: joins its box, gives up every right, takes limits.

Standard library only, since the zygote may run in another Python. Nothing here can be undone by what runs afterwards.
"""

import ctypes
import os
import resource
import site
import sys
from contextlib import suppress
from pathlib import Path

_PROCESSES = 0x20000000
_OTHER_NAMESPACES = 0x00020000 | 0x04000000 | 0x08000000 | 0x40000000
"""Mounts, host name, IPC, network."""
_USER_NAMESPACE = 0x10000000
_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38
_CAPSET = 126 if os.uname().machine == "x86_64" else 91
_CAPABILITY_VERSION_3 = 0x20080522
_LIBC = ctypes.CDLL(None, use_errno=True)
"""Opened once, before the fork: every worker would pay for it."""

MEMORY_BYTES = 16 << 30
FILE_BYTES = 1 << 30
PROCESSES = 256
"""Threads count too."""
OPEN_FILES = 1024


def surroundings() -> dict[str, list[str]]:
    """What this interpreter needs to see of the file system, and what lies in there that is no solution's business."""
    prefixes = {sys.prefix, sys.base_prefix, sys.exec_prefix}
    if site.ENABLE_USER_SITE:
        prefixes.add(site.getusersitepackages())
    visible = sorted(str(Path(path).resolve()) for path in prefixes if Path(path).is_dir())
    own = [Path(path).resolve() / name for path in sys.path for name in ("mcp_server", "supervisor")]
    hidden = [str(path) for path in own if path.is_dir() and any(path.is_relative_to(root) for root in visible)]
    return {"visible": visible, "hidden": hidden}


def open_to_all(path: str) -> bool:
    """Whether another user could read what lies under `path`."""
    return all(folder.stat().st_mode & 0o001 for folder in (Path(path), *Path(path).parents))


def fork_into(pidfd: int) -> None:
    """Have the next fork be a process of the box; for root, who can do it again and again."""
    _checked(_LIBC.setns(pidfd, _PROCESSES), "setns")


def join_box(pidfd: int) -> None:
    """Enter the namespaces of the box. Others than root must enter its users' namespace first, which has no return."""
    which = _OTHER_NAMESPACES if os.geteuid() == 0 else _OTHER_NAMESPACES | _USER_NAMESPACE | _PROCESSES
    _checked(_LIBC.setns(pidfd, which), "setns")


def drop_rights(uid: int | None, boxed: bool) -> None:
    """Become a user who owns nothing, if one is given; no capability now, none to come by.

    Root that stays root keeps its rights outside a box, where the interpreter's files may be another user's.
    """
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    _checked(_LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")
    # Its own /proc is its own again: the change of user gave it to root.
    _checked(_LIBC.prctl(_PR_SET_DUMPABLE, 1, 0, 0, 0), "prctl")
    if uid is not None or boxed or os.geteuid() != 0:
        header, nothing = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0), (ctypes.c_uint32 * 6)()
        _checked(_LIBC.syscall(_CAPSET, header, nothing), "capset")


def take_limits(*, device: bool) -> None:
    """Resource limits that cannot be raised again. None of CPU time: with one, the CPU clock only moves at ticks."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if not device:  # a GPU's driver reserves addresses for all memory of the machine
        _limit(resource.RLIMIT_AS, min(MEMORY_BYTES, max(memory * 3 // 4, 4 << 30)))
    _limit(resource.RLIMIT_FSIZE, FILE_BYTES)
    _limit(resource.RLIMIT_NPROC, PROCESSES)
    _limit(resource.RLIMIT_NOFILE, OPEN_FILES)
    _limit(resource.RLIMIT_CORE, 0)
    _go_first()


def _go_first() -> None:
    """When the machine's memory is used up, the kernel is to end this process and not the judge."""
    with suppress(OSError):  # plain calls: just after a fork a file object takes a millisecond
        fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        os.write(fd, b"1000")
        os.close(fd)


def _limit(what: int, most: int) -> None:
    """Never above what this process was itself given."""
    hard = resource.getrlimit(what)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(what, (most, most))


def _checked(result: int, what: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")
