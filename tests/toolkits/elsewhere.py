"""Runs this checkout as it would run elsewhere: for another user, or where the kernel gives out no user namespaces.

For root only. Folders on the way to the interpreter that are closed to others are laid open in a mount namespace of the
command's own; nothing on disk changes.
"""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from pathlib import Path

import pytest

NOBODY = 65534
NEEDED = tuple(Path(path).resolve() for path in (sys.base_prefix, sys.prefix, Path(__file__).parents[2]))
AS_NOBODY = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", "--"]

for_root_only = pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")


def verb(home: Path, *words: str, prefix: Sequence[str] = AS_NOBODY, namespaces: bool = True) -> tuple[int, str]:
    """Exit status and stdout of `kernel-lab WORDS`, whose user owns nothing but `home`."""
    command = [sys.executable, "-P", "-m", "mcp_server", "--root", str(home / "lab"), *words]
    return run(home, [*prefix, *command], namespaces=namespaces)


def run(home: Path, command: Sequence[str], *, namespaces: bool = True) -> tuple[int, str]:
    """The same of any command, which runs in `home`."""
    script = "\n".join([*_laid_open(home), f"cd {shlex.quote(str(home))}", f"exec {shlex.join(command)}"])
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    if namespaces:
        whole = ["unshare", "--mount", "sh", "-ec", script]
        done = subprocess.run(whole, env=environment, stdout=subprocess.PIPE, text=True, timeout=300)
        return done.returncode, done.stdout
    return _without_namespaces(script, environment)


def _without_namespaces(script: str, environment: dict[str, str]) -> tuple[int, str]:
    """In a user namespace with all users, where no further one may be made."""
    inner = f"echo 0 > /proc/sys/user/max_user_namespaces\n{script}"
    # The first shell has no rights until its users are known; the second one starts with all of them.
    outer = f"echo ready; read go; exec unshare --mount sh -ec {shlex.quote(inner)}"
    with subprocess.Popen(
        ["unshare", "--user", "sh", "-ec", outer],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdin and child.stdout and child.stdout.readline() == "ready\n"
        for kind in ("uid", "gid"):
            Path(f"/proc/{child.pid}/{kind}_map").write_text("0 0 65536\n", encoding="utf-8")
        output, _ = child.communicate("go\n", timeout=300)
        return child.returncode, output


def _laid_open(home: Path) -> list[str]:
    """Shell lines that make the interpreter and this checkout reachable for everyone, in this mount namespace."""
    closed = {folder for path in NEEDED for folder in path.parents if not folder.stat().st_mode & 0o001}
    lines: list[str] = []
    for folder in sorted(folder for folder in closed if not closed & set(folder.parents)):
        places = {path: home / f".kept-{number}" for number, path in enumerate(NEEDED) if path.is_relative_to(folder)}
        lines += [line for path, kept in places.items() for line in _bound(path, kept)]
        lines.append(f"mount -t tmpfs -o mode=755 none {shlex.quote(str(folder))}")
        lines += [line for path, kept in places.items() for line in _bound(kept, path)]
    return lines


def _bound(place: Path, other: Path) -> list[str]:
    return [f"mkdir -p {shlex.quote(str(other))}", f"mount --rbind {shlex.quote(str(place))} {shlex.quote(str(other))}"]


@pytest.fixture
def home() -> Generator[Path]:
    """A home of nobody's, where everybody may look."""
    folder = Path(tempfile.mkdtemp(prefix="kernel-lab-home-"))
    os.chown(folder, NOBODY, NOBODY)
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)
