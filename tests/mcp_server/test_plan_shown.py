"""A task with a plan step at a terminal: what its author reads, and both figures of a benchmark."""

import json
import shutil
from pathlib import Path

import pytest

from mcp_server.__main__ import main

FOLDER = Path(__file__).parents[1] / "cheats/task/sorted_rows"


@pytest.fixture
def printed(root: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The figures of one benchmark as they are shown, then as JSON of the record."""
    shutil.copytree(FOLDER, root / "kernels/sorted_rows")
    _run(root, "benchmark", "sorted_rows", "planned")
    return capsys.readouterr().out


def _run(root: Path, *words: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--root", str(root), *words])
    assert not ended.value.code


def test_a_benchmark_shows_both_figures_in_table_text_and_json(
    root: Path, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    head, *lines = printed.splitlines()
    assert "plan us" in head and "run only" in head
    assert all(len(line) <= 100 for line in lines if line.startswith(("big", "small")))
    assert " plan included, " in printed and " run only, against planned" in printed
    evaluation = next(line for line in lines if line.startswith("evaluation: ")).split()[1]
    _run(root, "get-result", evaluation, "--json")
    answer = json.loads(capsys.readouterr().out)
    assert answer["run_only"]["low"] <= answer["run_only"]["value"] <= answer["run_only"]["high"]
    assert all(line["plan_us"] > 0 and line["baseline_plan_us"] > 0 for line in answer["workloads"])
    assert all(line["run_only"]["value"] > 0 for line in answer["workloads"])


def test_the_description_says_what_a_plan_may_read_and_shows_both_functions(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(FOLDER, root / "kernels/sorted_rows")
    _run(root, "describe-task", "sorted_rows")
    printed = capsys.readouterr().out
    assert "plan_entry_point: file::function" in printed and "only key is written" in printed
    assert "workspace of 4*rows bytes" in printed
    assert 'C++ with a plan: extern "C" void plan(const int32_t* key, void* workspace,' in printed
    assert "Python with a plan: def run(plan: object, x: torch.Tensor," in printed
    _run(root, "describe-task", "scale")
    assert "plan" not in capsys.readouterr().out
