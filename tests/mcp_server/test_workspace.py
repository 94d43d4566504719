"""The workspace: paths stay inside, files that do not read are told by file, field and remedy, what is stored stays."""

import json
from pathlib import Path
from typing import Any

import pytest

from mcp_server.reading import yaml_text
from mcp_server.workspace import Workspace
from toolkits.core.errors import HarnessError, InvalidInput, NotInWorkspace
from toolkits.core.schema import Solution, Task

TASK: dict[str, Any] = {
    "name": "scale",
    "title": "Scale a vector",
    "op_type": "elementwise",
    "description": "y = a * x",
    "axes": {"n": {"type": "var"}, "lanes": {"type": "const", "value": 8}},
    "inputs": {"x": {"shape": ["2*n-1", "lanes"], "dtype": "float32"}, "a": {"shape": None, "dtype": "float32"}},
    "outputs": {"y": {"shape": ["2*n-1", "lanes"], "dtype": "float32"}},
    "checks": [{"output": "y", "rule": "rel_l2", "tolerance": 1e-5}],
    "distributions": {"normal": {"description": "standard normal"}},
    "correctness": [{"n": 3}],
    "baselines": ["torch_out"],
    "start": "naive",
}
WORKLOADS = [{"uuid": "small", "axes": {"n": 4}}, {"uuid": "large", "axes": {"n": 64}, "distribution": "normal"}]
SOLUTION = {
    "toolkit": "cpp",
    "entry_point": "kernel.cpp::scale",
    "tunables": {"TILE": {"values": [4, 8], "default": 4}},
    "parameters": {"TILE": 8},
}


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A root with one task of the user's own, seen from a working directory beside it."""
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    workspace = Workspace(tmp_path / "root")
    write_task(workspace)
    return workspace


def write_task(workspace: Workspace, workloads: list[dict[str, Any]] | None = None, **changes: object) -> Path:
    folder = workspace.root / "kernels" / "scale"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "task.yaml").write_text(yaml_text(TASK | changes), encoding="utf-8")
    lines = [json.dumps(workload) for workload in workloads or WORKLOADS]
    (folder / "workloads.jsonl").write_text("\n".join(lines) + "\n\n", encoding="utf-8")
    (folder / "reference.py").write_text("# the formula\n", encoding="utf-8")
    return folder


def write_solution(folder: Path, **changes: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "solution.yaml").write_text(yaml_text(SOLUTION | changes), encoding="utf-8")
    (folder / "kernel.cpp").write_text("void scale() {}\r\n", encoding="utf-8", newline="")
    return folder


def refusal(workspace: Workspace) -> str:
    with pytest.raises(InvalidInput) as caught:
        workspace.task("scale")
    return str(caught.value)


# --- tasks ----------------------------------------------------------------------------------------------------------


def test_the_users_tasks_are_laid_over_the_shipped_ones(workspace: Workspace) -> None:
    write_task(workspace, title="first")
    assert "scale" in workspace.tasks()
    assert workspace.task("scale").title == "first"
    assert [workload.uuid for workload in workspace.task("scale").workloads] == ["small", "large"]


def test_a_users_task_replaces_the_shipped_one_of_its_name(workspace: Workspace) -> None:
    shipped = workspace.tasks()[0]
    folder = write_task(workspace, name=shipped, title="mine")
    folder.rename(folder.with_name(shipped))
    assert workspace.task(shipped).title == "mine"


def test_every_shipped_task_reads(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    for name in workspace.tasks():
        task = workspace.task(name)
        assert {*task.baselines, *task.variants, task.start} <= workspace.solutions(task).keys()


def test_the_content_hash_follows_what_is_judged_and_nothing_else(workspace: Workspace) -> None:
    before = workspace.task("scale").content_hash
    write_solution(workspace.root / "kernels/scale/solutions/naive")
    assert workspace.task("scale").content_hash == before
    (workspace.root / "kernels/scale/reference.py").write_text("# another formula\n", encoding="utf-8")
    assert workspace.task("scale").content_hash != before


def test_an_unknown_task_is_answered_with_the_closest_and_all(workspace: Workspace) -> None:
    with pytest.raises(NotInWorkspace, match=r"did you mean 'scale'\? the tasks are .*scale"):
        workspace.task("scal")
    with pytest.raises(NotInWorkspace, match="the tasks are"):
        workspace.task("../../etc")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"title": [1]}, "field `title`: Input should be a valid string"),
        ({"titel": "x"}, "unknown field `titel`, did you mean `title`?"),
        ({"checks": [{"output": "y", "rule": "exact", "tolerance": 0}]}, "field `checks.0.rule`: Input should be"),
        ({"checks": [{"output": "z", "rule": "fla", "tolerance": 0}]}, "a check names output 'z': the outputs are y"),
        ({"axes": {"n": {"type": "var", "value": 3}}}, "a const axis needs a value, a var axis has none"),
        ({"axes": {"n": {"type": "var"}}}, "shape of 'x' uses undeclared axis 'lanes'"),
        ({"outputs": {"y": {"shape": ["n // 2 % 3"], "dtype": "float32"}}}, "not a sum or product"),
        ({"correctness": [{"m": 3}]}, "correctness round 1 gives axes ['m'], the task's var axes are ['n']"),
        ({"name": "other"}, "make them equal"),
        ({"work": {"bytes": "4*m"}}, "task scale: work: bytes: '4*m': axis expression 'm': only axes (n, lanes)"),
        ({"work": {"flops": "n**2"}}, "task scale: work: flops: 'n**2': axis expression 'n ** 2': only axes"),
        ({"work": {"flops": "n +"}}, "task scale: work: flops: 'n +': axis expression 'n +' does not evaluate"),
        ({"work": {"bytes": "n-5"}}, "task scale: work: bytes: 'n-5' is -1 for workload 'small': below 0"),
        ({"work": {"loads": "n"}}, "field `work.loads`"),
    ],
)
def test_a_task_that_does_not_fit_is_told_by_field(workspace: Workspace, changes: dict[str, Any], told: str) -> None:
    write_task(workspace, **changes)
    message = refusal(workspace)
    assert told in message
    assert "task.yaml: " in message
    assert "pydantic" not in message
    assert message.count("\n") == 0


@pytest.mark.parametrize(
    ("workloads", "told"),
    [
        ([*WORKLOADS, WORKLOADS[0]], "uuid 'small' 2 times"),
        ([{"uuid": "u", "axes": {"n": 1, "lanes": 8}}], "gives axes ['lanes', 'n']"),
        ([{"uuid": "u", "axes": {"n": -1}}], "negative axis"),
        ([{"uuid": "u", "axes": {"n": 1}, "distribution": "odd"}], "unknown distribution 'odd': known are normal"),
        ([{"axes": {"n": 1}}], "workloads.jsonl:1: field `uuid` is missing"),
    ],
)
def test_a_workload_that_does_not_fit_is_told(workspace: Workspace, workloads: list[dict[str, Any]], told: str) -> None:
    write_task(workspace, workloads)
    assert told in refusal(workspace)


def test_broken_yaml_and_json_are_told_by_line(workspace: Workspace) -> None:
    folder = write_task(workspace)
    (folder / "workloads.jsonl").write_text('{"uuid": "a", "axes": {"n": 1}}\n{"uuid"\n', encoding="utf-8")
    assert "workloads.jsonl:2: not valid JSON" in refusal(workspace)
    write_task(workspace)
    (folder / "task.yaml").write_text("name: scale\ntitle: a: b\n", encoding="utf-8")
    assert "task.yaml:2:9: not valid YAML" in refusal(workspace)
    (folder / "task.yaml").write_text("- scale\n", encoding="utf-8")
    assert "must be a mapping" in refusal(workspace)
    (folder / "reference.py").unlink()
    assert "reference.py cannot be read" in refusal(workspace)


# --- solutions ------------------------------------------------------------------------------------------------------


def test_a_solution_is_read_by_its_name_or_from_its_folder(workspace: Workspace) -> None:
    task = workspace.task("scale")
    write_solution(workspace.root / "kernels/scale/solutions/naive")
    folder = write_solution(Path.cwd() / "work" / "v3")
    assert list(workspace.solutions(task)) == ["naive"]
    by_name, by_path = workspace.solution(task, "naive"), workspace.solution(task, str(folder))
    assert by_name.id == by_path.id == workspace.solution(task, "work/v3").id
    assert by_name.sources == {"kernel.cpp": "void scale() {}\r\n"}
    assert by_name.chosen() == {"TILE": 8}


def test_caches_and_hidden_files_are_no_sources(workspace: Workspace) -> None:
    folder = write_solution(Path.cwd() / "v1")
    for name in ("__pycache__/x.pyc", ".git/config", "inc/tile.h"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"\0" if name.endswith("pyc") else b"// text")
    assert sorted(workspace.solution(workspace.task("scale"), "v1").sources) == ["inc/tile.h", "kernel.cpp"]


def test_a_missing_solution_yaml_is_answered_with_a_minimal_one(workspace: Workspace) -> None:
    (Path.cwd() / "v1").mkdir()
    with pytest.raises(InvalidInput, match=r"toolkit: cpp\nentry_point: kernel\.cpp::function_name"):
        workspace.solution(workspace.task("scale"), "v1")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"entry_point": "kernel.cpp"}, "must be `file::function` with a file of the solution"),
        ({"entry_point": "other.cpp::scale"}, "must be `file::function` with a file of the solution"),
        ({"parameters": {"TILE": 5}}, "parameter TILE=5 is not a declared value"),
        ({"task": "matmul"}, "it is for task 'matmul', not 'scale'"),
        ({"sources": {}}, "the text files beside it are the sources"),
        ({"toolkit": None}, "solution.yaml: field `toolkit`: Input should be a valid string"),
    ],
)
def test_a_solution_that_does_not_fit_is_told(workspace: Workspace, changes: dict[str, Any], told: str) -> None:
    write_solution(Path.cwd() / "v1", **changes)
    with pytest.raises(InvalidInput) as caught:
        workspace.solution(workspace.task("scale"), "v1")
    assert told in str(caught.value)


def test_what_is_not_a_source_is_refused(workspace: Workspace, tmp_path: Path) -> None:
    task = workspace.task("scale")
    folder = write_solution(Path.cwd() / "v1")
    extra = folder / "extra"
    for content, told in (
        (b"\x7fELF\0", "binary"),
        (b"\xff\xfe", "not UTF-8"),
        (b" " * 1_000_001, "more than 1000000"),
    ):
        extra.write_bytes(content)
        with pytest.raises(InvalidInput, match=told):
            workspace.solution(task, "v1")
    extra.unlink()
    (tmp_path / "secret").write_text("key", encoding="utf-8")
    extra.symlink_to(tmp_path / "secret")
    with pytest.raises(InvalidInput, match="symbolic link"):
        workspace.solution(task, "v1")


def test_paths_outside_the_allowed_roots_are_refused_with_the_roots(workspace: Workspace, tmp_path: Path) -> None:
    task = workspace.task("scale")
    outside = write_solution(tmp_path / "outside")
    (Path.cwd() / "link").symlink_to(outside)
    for path in (str(outside), "../outside", "link", "/etc"):
        with pytest.raises(NotInWorkspace) as caught:
            workspace.solution(task, path)
        assert str(workspace.root) in str(caught.value)
        assert str(Path.cwd()) in str(caught.value)
    assert Workspace(workspace.root, extra_roots=[outside]).solution(task, str(outside)).toolkit == "cpp"


def test_a_path_that_leads_nowhere_is_told(workspace: Workspace) -> None:
    task = workspace.task("scale")
    write_solution(workspace.root / "kernels/scale/solutions/naive")
    with pytest.raises(NotInWorkspace, match=r"did you mean 'naive'\?"):
        workspace.solution(task, "naiv")
    file = write_solution(Path.cwd() / "v1") / "kernel.cpp"
    with pytest.raises(InvalidInput, match="give the folder"):
        workspace.solution(task, str(file))
    for path in ("nul\0", "x" * 5000):
        with pytest.raises((InvalidInput, NotInWorkspace)):
            workspace.solution(task, path)


# --- the store ------------------------------------------------------------------------------------------------------


def read(workspace: Workspace) -> tuple[Task, Solution]:
    task = workspace.task("scale")
    return task, workspace.solution(task, str(write_solution(Path.cwd() / "v1", description="ümlaut: yes")))


def test_a_stored_solution_comes_back_the_same_by_id_and_by_path(workspace: Workspace) -> None:
    task, solution = read(workspace)
    folder = workspace.store(solution)
    assert workspace.store(solution) == folder == workspace.root / "solutions" / solution.id
    assert workspace.stored(solution.id, task) == workspace.solution(task, str(folder)) == solution
    assert [entry.name for entry in folder.parent.iterdir()] == [solution.id]


def test_a_stored_solution_that_was_changed_is_noticed(workspace: Workspace) -> None:
    task, solution = read(workspace)
    (workspace.store(solution) / "kernel.cpp").write_text("void scale() { cheat(); }", encoding="utf-8")
    with pytest.raises(InvalidInput, match="changed after it was stored"):
        workspace.stored(solution.id, task)
    with pytest.raises(NotInWorkspace, match="only measured ones are stored"):
        workspace.stored("0" * 16, task)


@pytest.mark.parametrize("name", ["../evil.cpp", "/tmp/evil.cpp", ".hidden/x.cpp", "a//b.cpp", "solution.yaml"])
def test_source_names_cannot_lead_out_of_the_store(workspace: Workspace, name: str) -> None:
    solution = Solution(task="scale", toolkit="cpp", entry_point=f"{name}::f", sources={name: ""})
    with pytest.raises(InvalidInput, match="plain relative path"):
        workspace.store(solution)
    assert list((workspace.root / "solutions").iterdir()) == []


# --- places ---------------------------------------------------------------------------------------------------------


def test_the_root_is_made_on_first_use_and_hidden_from_git(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "root")
    workspace.tasks()
    assert not workspace.root.exists()
    assert workspace.role_folder("night-1", 3, "tuner").is_dir()
    assert (workspace.root / ".gitignore").read_text(encoding="utf-8") == "*\n"
    assert workspace.role_folder("night-1", 3, "tuner") == workspace.root / "runs/night-1/teams/003/tuner"


def test_names_that_are_paths_are_refused(workspace: Workspace) -> None:
    for name in ("..", "a/b", "", "a\0", "x" * 65):
        with pytest.raises(InvalidInput, match="does not serve as a name"):
            workspace.run_folder(name)


def test_a_root_that_cannot_be_made_is_a_failure_of_the_lab(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(HarnessError, match="KERNEL_LAB_ROOT"):
        assert Workspace(tmp_path / "file" / "root").builds
