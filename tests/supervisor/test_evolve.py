"""Whole runs of the supervisor on a small real task: real server, judge, compiler and tuners."""

import json
import signal
from pathlib import Path
from typing import cast

import pytest

from tests.supervisor.runs import evolve, evolving, processes_of, write_task
from toolkits.core.schema import Json


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace that has the task."""
    write_task(tmp_path)
    return tmp_path


@pytest.mark.slow
def test_a_small_run_finds_a_faster_kernel_and_says_how(root: Path) -> None:
    status, out, err = evolve(root, "--json")
    assert status == 0, err
    figures = cast(Json, json.loads(out))
    assert figures["winner"]["speedup"]["low"] > 1 and len(figures["winner"]["evaluations"]) == 5
    assert figures["evaluations"] <= 26 and figures["usd"] == 0
    assert figures["generations"] >= 2 and figures["redesigns"] >= 1
    assert [row["workload"] for row in figures["workloads"]] == ["n400000"]
    folder = root / "runs" / "scale"
    assert (folder / "run.yaml").is_file() and (folder / "teams" / "002" / "team.yaml").is_file()
    winner = figures["winner"]["evaluations"][0]
    assert winner in (folder / "LEARNINGS.md").read_text() and winner in (folder / "HISTORY.md").read_text()

    status, out, _ = evolve(root, "--run", "scale")
    assert status == 0 and "a faster kernel" in out and "\x1b" not in out

    status, out, err = evolve(root, "--run", "scale", "--agent", "replay")
    assert status == 2 and "created with agent=tuner, this command says agent=replay" in err


@pytest.mark.slow
def test_an_interrupted_run_leaves_nothing_alive_and_the_same_command_finishes_it(root: Path) -> None:
    with evolving(root) as process:
        assert process.stdout
        before = next(line for line in process.stdout if " 3 tuner" in line)
        process.send_signal(signal.SIGINT)
        said = process.stdout.read()
    assert process.returncode == 130 and "interrupted; the same command goes on" in said, before + said
    assert processes_of(root) == []
    assert "not finished" in (root / "runs" / "scale" / "HISTORY.md").read_text().lower()

    status, out, err = evolve(root)
    assert status == 0, err
    assert "resumed after" in out and "a faster kernel" in out, out
    assert [line.split()[1] for line in out.splitlines() if " verify: " in line]
    assert sorted(path.name for path in (root / "runs").iterdir()) == ["scale"]
