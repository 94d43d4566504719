"""The git repository of a run, with a worktree and a branch for each role. Knows no ledger.

Git gets a cleared configuration, and is told where its files are: what an agent writes into its worktree, filters or
another `.git`, steers nothing.
"""

import logging
import os
import shutil
from pathlib import Path

from mcp_server.folders import write_solution
from toolkits.core.process import run
from toolkits.core.schema import Solution

PATIENCE_S = 30.0
SOLUTION_FOLDER = "solution"
"""Of a worktree: the task's start solution, to be edited."""
GIT_DIR_FILE = "git-dir"
"""Beside the worktree, where its role does not write: what git keeps about it."""
_IDENTITY = "kernel-lab"
_CLEAN = ("core.hooksPath=/dev/null", "core.fsmonitor=false", "commit.gpgsign=false", "gc.auto=0")

log = logging.getLogger(__name__)


async def prepared(repository: Path, worktree: Path, branch: str, start: Solution) -> None:
    """Make the role's worktree, or leave the one of an earlier attempt; without git a plain folder serves."""
    if worktree.is_dir():
        return
    if shutil.which("git"):
        await _added(repository, worktree, branch)
    worktree.mkdir(exist_ok=True)
    folder = worktree / SOLUTION_FOLDER
    folder.mkdir()
    write_solution(start, folder)
    await committed(worktree, f"start from solution {start.id}")


async def committed(worktree: Path, message: str) -> None:
    """Commit all of the worktree, also where nothing changed: the commit is the mark of an event."""
    file = worktree.parent / GIT_DIR_FILE
    if not file.is_file():
        return
    where = (f"--git-dir={file.read_text(encoding='utf-8')}", f"--work-tree={worktree}")
    if await _git(worktree, *where, "add", "--all", ".") is not None:
        await _git(worktree, *where, "commit", "--quiet", "--allow-empty", "--message", message)


async def _added(repository: Path, worktree: Path, branch: str) -> None:
    if not repository.is_dir() and not await _created(repository):
        return
    added = await _git(repository, "worktree", "add", "--quiet", "-B", branch, str(worktree), "main")
    if added is not None:
        link = (worktree / ".git").read_text(encoding="utf-8")
        (worktree.parent / GIT_DIR_FILE).write_text(link.removeprefix("gitdir:").strip(), encoding="utf-8")


async def _created(repository: Path) -> bool:
    """An empty first commit on `main`, from which every role branches off."""
    aside = repository.with_name(f"{repository.name}-{os.getpid()}")
    aside.mkdir(parents=True, exist_ok=True)
    await _git(aside, "init", "--quiet", "--bare", "--initial-branch=main", "--template=", ".")
    tree = await _git(aside, "hash-object", "-t", "tree", "-w", "/dev/null")
    commit = await _git(aside, "commit-tree", tree.strip(), "-m", "the run begins") if tree else None
    if not commit or await _git(aside, "update-ref", "refs/heads/main", commit.strip()) is None:
        shutil.rmtree(aside, ignore_errors=True)
        return False
    aside.rename(repository)
    return True


async def _git(folder: Path, *words: str) -> str | None:
    """What git printed; None where it failed, which the log tells: no role ends for want of a commit."""
    settings = [word for setting in _CLEAN for word in ("-c", setting)]
    who = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in _who().items()}
    nothing = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_TERMINAL_PROMPT": "0"}
    environment = {"PATH": os.environ.get("PATH", os.defpath), "HOME": os.devnull, "LANG": "C.UTF-8"} | nothing | who
    done = await run(["git", *settings, *words], cwd=folder, timeout_s=PATIENCE_S, env=environment)
    if done.returncode != 0:
        log.warning("git %s failed in %s: %s", words[0], folder, done.output.strip()[-300:])
        return None
    return done.output


def _who() -> dict[str, str]:
    return {"NAME": _IDENTITY, "EMAIL": f"{_IDENTITY}@localhost"}
