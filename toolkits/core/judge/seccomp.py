"""The filter a worker puts on its own system calls: processes only with the judge's leave, some calls never.

Standard library only, since the zygote may run in another Python. Nothing here can be undone by what runs afterwards,
and every process and thread that is made later inherits it. Threads are free: their work counts as the worker's.
"""

import ctypes
import errno
import os
from contextlib import suppress
from functools import cache

_NUMBERS = {
    # By these a process is made. glibc takes clone when clone3, whose flags no filter can read, is said not to exist.
    "fork": (57, None),
    "vfork": (58, None),
    "clone": (56, 220),
    "clone3": (435, 435),
    "socket": (41, 198),
    # Looking into, steering or borrowing from another process.
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "perf_event_open": (298, 241),
    # Work that the kernel does for a process, out of this filter's sight or at the moment of someone's choice.
    "io_uring_setup": (425, 425),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    # Out of the box: other namespaces, and with them rights over mounts.
    "setns": (308, 268),
    "unshare": (272, 97),
    "mount": (165, 40),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "open_tree": (428, 428),
    "open_by_handle_at": (304, 265),
    # What outlives the process and would carry answers to the next one where there is no box.
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "shmget": (29, 194),
    "semget": (64, 190),
    "msgget": (68, 186),
    # Away from the core that candidate, baseline and judge share, and who goes first there.
    "sched_setaffinity": (203, 122),
    "setpriority": (141, 140),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setattr": (314, 274),
    # Gives descriptors away: memory that no process shows, and files whose end the judge would have to wait for.
    "sendmsg": (46, 211),
    "sendmmsg": (307, 269),
}
"""On x86-64 and on aarch64."""
_WITHOUT_EFFECT = ("sched_setaffinity",)
"""For oneself said to have succeeded: some ask for it in good faith, and a refusal would end them."""
_WITH_CONDITIONS = ("fork", "vfork", "clone", "clone3", "socket")
_LATER = ("sendmsg", "sendmmsg")
"""Once the judge has been sent what it listens with."""
_ARCHITECTURES = {"x86_64": (0, 0xC000003E, 317), "aarch64": (1, 0xC00000B7, 277)}
"""Column above, what the kernel calls it, number of `seccomp`."""
_X32 = 0x40000000
_CLONE_THREAD = 0x00010000
_CLONE_NAMESPACES = 0x7E020000
_FAMILIES = (38, 40)
"""AF_ALG, the kernel's cipher, and AF_VSOCK, which reaches the host of a virtual machine past any namespace."""

_NUMBER, _CALLING, _FIRST_ARGUMENT = 0, 4, 16
"""Where they lie in `seccomp_data`: number, calling convention, lower half of the first argument."""
_ALLOW, _ERRNO, _NOTIFY, _KILL = 0x7FFF0000, 0x00050000, 0x7FC00000, 0x80000000
_IGNORE, _REFUSE, _UNKNOWN = _ERRNO, _ERRNO | errno.EPERM, _ERRNO | errno.ENOSYS
_SET_FILTER, _PLAIN_SPEED, _LISTENER = 1, 4, 8
"""Plain speed: no mitigation of speculation beyond what unfiltered processes have, which would be timed."""
_CONTINUES_SINCE = (5, 5)
_MACHINE = os.uname().machine
_RELEASE = tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2])
_LIBC = ctypes.CDLL(None, use_errno=True)

LISTENED, REFUSED, NONE = "listened", "refused", "none"
"""The judge decides on each process; nobody may make one; nothing is filtered."""


def take_filter() -> tuple[str, list[int]]:
    """Filter this thread's calls for ever; how it went, and the descriptor on which the judge is asked, if there is."""
    if _RELEASE >= _CONTINUES_SINCE:
        # A container's runtime may listen already, and there can be but one.
        with suppress(OSError):
            return LISTENED, [_installed(_NOTIFY, _PLAIN_SPEED | _LISTENER)]
    with suppress(OSError):
        _installed(_REFUSE, _PLAIN_SPEED)
        return REFUSED, []
    return NONE, []


def keep_descriptors() -> None:
    """Filter once more, after the listener was sent: from now on no descriptor can be sent to anybody."""
    with suppress(OSError):
        _put_on(_later(_MACHINE), _PLAIN_SPEED)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def _installed(on_process: int, flags: int) -> int:
    if _MACHINE not in _ARCHITECTURES:
        raise OSError(errno.ENOSYS, "no filter for this architecture")
    return _put_on(program(_MACHINE, on_process), flags)


def _put_on(code: bytes, flags: int) -> int:
    result = _LIBC.syscall(
        _ARCHITECTURES[_MACHINE][2], _SET_FILTER, flags, ctypes.byref(_Program(len(code) // 8, code))
    )
    if result < 0:
        raise OSError(ctypes.get_errno(), f"seccomp: {os.strerror(ctypes.get_errno())}")
    return result


@cache
def program(machine: str, on_process: int) -> bytes:
    """The filter's instructions, in the order of its questions; made ready before the first fork."""
    column, audit, _ = _ARCHITECTURES[machine]
    numbers = {name: both[column] for name, both in _NUMBERS.items()}
    conditional = (*_WITH_CONDITIONS, *_WITHOUT_EFFECT, *_LATER)
    never = [number for name, number in numbers.items() if name not in conditional and number is not None]
    forks = [number for name in ("fork", "vfork") if (number := numbers[name]) is not None]
    parts = [
        *(_load(_CALLING), _skip_unless(_JEQ, audit, 1), _skip(1), _answer(_KILL)),
        *(_load(_NUMBER), *_when(_JGE, _X32, _answer(_UNKNOWN))),
        *(part for number in never for part in _when(_JEQ, number, _answer(_REFUSE))),
        *(part for name in _WITHOUT_EFFECT for part in _when(_JEQ, numbers[name] or 0, *_for_oneself())),
        *(part for number in forks for part in _when(_JEQ, number, _answer(on_process))),
        *_when(_JEQ, numbers["clone3"] or 0, _answer(_UNKNOWN)),
        *_when(_JEQ, numbers["socket"] or 0, *_socket()),
        *_when(_JEQ, numbers["clone"] or 0, *_clone(on_process)),
        _answer(_ALLOW),
    ]
    return b"".join(parts)


@cache
def _later(machine: str) -> bytes:
    """The second filter; other ways to call the kernel are closed by the first."""
    numbers = [_NUMBERS[name][_ARCHITECTURES[machine][0]] or 0 for name in _LATER]
    parts = [part for number in numbers for part in _when(_JEQ, number, _answer(_REFUSE))]
    return b"".join([_load(_NUMBER), *parts, _answer(_ALLOW)])


def _for_oneself() -> list[bytes]:
    return [_load(_FIRST_ARGUMENT), *_when(_JEQ, 0, _answer(_IGNORE)), _answer(_REFUSE)]


def _socket() -> list[bytes]:
    refused = [part for family in _FAMILIES for part in _when(_JEQ, family, _answer(_REFUSE))]
    return [_load(_FIRST_ARGUMENT), *refused, _answer(_ALLOW)]


def _clone(on_process: int) -> list[bytes]:
    return [
        *(_load(_FIRST_ARGUMENT), *_when(_JSET, _CLONE_NAMESPACES, _answer(_REFUSE))),
        *(*_when(_JSET, _CLONE_THREAD, _answer(_ALLOW)), _answer(on_process)),
    ]


_JEQ, _JGE, _JSET = 0x15, 0x35, 0x45


def _instruction(code: int, then: int, otherwise: int, operand: int) -> bytes:
    return code.to_bytes(2, "little") + bytes((then, otherwise)) + operand.to_bytes(4, "little")


def _load(offset: int) -> bytes:
    return _instruction(0x20, 0, 0, offset)


def _answer(value: int) -> bytes:
    return _instruction(0x06, 0, 0, value)


def _skip(count: int) -> bytes:
    return _instruction(0x05, 0, 0, count)


def _skip_unless(test: int, operand: int, count: int) -> bytes:
    return _instruction(test, 0, count, operand)


def _when(test: int, operand: int, *then: bytes) -> list[bytes]:
    """`then`, which must end with an answer, if what was loaded passes the test."""
    return [_skip_unless(test, operand, len(then)), *then]


if _MACHINE in _ARCHITECTURES:
    program(_MACHINE, _NOTIFY)
    _later(_MACHINE)
