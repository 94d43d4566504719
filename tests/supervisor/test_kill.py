"""kill -9 of the whole process tree at random moments: the same command goes on, nothing is lost or counted twice."""

import json
import os
import random
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from mcp_server.ledger import Ledger
from tests.supervisor.runs import evolve, evolving, processes_of, write_task

KILLS = 10


def _tree(pid: int) -> list[int]:
    """The process and all its descendants."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found = [pid]
    for parent in found:
        found += children.get(parent, [])
    return found


def _killed_after(root: Path, seconds: float) -> bool:
    """Run the command and kill its tree after a while; False when it ended by itself before."""
    with evolving(root) as process:
        assert process.stdout
        deadline = select.select([], [], [], seconds)
        assert deadline == ([], [], [])
        if process.poll() is not None:
            return False
        for pid in _tree(process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.communicate()
        return True


def _recorded(root: Path) -> dict[str, str]:
    """Evaluation id -> its job, as the ledger has them now."""
    if not (root / "lab.db").is_file():
        return {}
    ledger = Ledger(root / "lab.db")
    rows = {row.id: row.job for row in ledger.evaluations(run="scale")}
    ledger.close()
    return rows


@pytest.mark.slow
def test_a_run_survives_ten_kills_of_its_whole_process_tree(tmp_path: Path) -> None:
    write_task(tmp_path)
    moments = random.Random()
    seen: dict[str, str] = {}
    for _ in range(KILLS):
        if not _killed_after(tmp_path, moments.uniform(0.3, 4.5)):
            break
        now = _recorded(tmp_path)
        assert seen.items() <= now.items(), "an evaluation that was recorded is gone"
        seen = now
    status, out, err = evolve(tmp_path, "--run", "scale", "--json")
    assert status == 0, err
    final = _recorded(tmp_path)
    figures = json.loads(out)
    assert seen.items() <= final.items() and len(set(final.values())) == len(final) == figures["evaluations"] <= 26
    searched = [row["solution"] for row in _events(tmp_path) if row["searched"]]
    assert len(set(searched)) == len(searched), "a candidate of the search was measured twice"
    command = [sys.executable, "-P", "-m", "mcp_server", "--root", str(tmp_path), "verify", "scale"]
    verified = subprocess.run(command, capture_output=True, text=True, check=False)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert processes_of(tmp_path) == []


def _events(root: Path) -> list[dict[str, str]]:
    """The evaluations as the history tells them."""
    ledger = Ledger(root / "lab.db")
    rows = ledger.history("scale", limit=10_000, kinds=("evaluation",))
    ledger.close()
    return [{"solution": str(row.body["solution"]), "searched": row.role} for row in rows]
