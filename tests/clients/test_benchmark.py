"""The real clients use the lab that `attach` gave them: they list its tools, and measure a kernel in C++."""

import json
from pathlib import Path

import pytest

from mcp_server.attach.client import ClientName, get_client
from tests.clients.people import TOKEN, WAYS, Person, Served
from tests.clients.results import recorded
from tests.scripted_model import Call, ScriptedModel, Step

TOOLS = ("compile", "benchmark", "profile", "get_result", "describe_task", "read_lessons", "spawn_role", "plot")
WORKFLOW = "list_tasks, then describe_task(task)"
"""The server's instructions."""
EXTRAS = {
    "claude": [Call("plot", {"of": "<evaluation>"})],
    "codex": [
        Call("read_mcp_resource", {"server": "kernel-lab", "uri": "kernel-lab://tasks"}),
        Call("plot", {"of": "<evaluation>"}),
    ],
}
"""What only some clients can do; the tools alone are for all."""
pytestmark = pytest.mark.slow


def script(path: str, *extras: Call) -> list[Step]:
    measure = {"task": "kmeans_assign", "path": path, "workloads": ["n8192_k256_d64"]}
    return [
        Step(calls=[Call("list_tasks")]),
        Step(calls=[Call("benchmark", measure)]),
        Step(calls=[Call("get_result", {"id": "<job>"})]),
        *(Step(calls=[extra]) for extra in extras),
        Step(text="Measured."),
    ]


@pytest.mark.parametrize("name", WAYS)
def test_over_stdio_a_client_sees_the_tools_measures_a_kernel_and_is_left_as_it_was(
    name: ClientName, tmp_path: Path
) -> None:
    with ScriptedModel(script("mine", *EXTRAS.get(name, []))) as model:
        person = Person(name, tmp_path)
        person.behind(model.url)
        person.own_solution()
        before = person.config
        said = person.lab("attach", name)
        assert "connected, by its own word" in said and all(tool in said for tool in TOOLS)
        person.ask(get_client(name).first_words)
        told, seen = json.dumps(model.turns[0].body), json.dumps(model.turns[-1].body)
        assert all(tool in told for tool in TOOLS) and WORKFLOW in seen
        assert "PASSED" in seen and recorded(person.root) == ["PASSED"]
        if name == "claude":
            assert "Make the kernel `kmeans_assign` faster" in told and '"type": "image"' in seen
        if name == "codex":
            assert "Nearest centroid of every point" in seen and '"input_image"' in seen
        assert "taken out of" in person.lab("detach", name)
    assert person.config == before


@pytest.mark.parametrize("name", WAYS)
def test_over_http_a_client_measures_a_kernel_with_a_token_that_stands_in_no_file(
    name: str, tmp_path: Path, lab: Served
) -> None:
    person = Person(name, tmp_path, more={"KERNEL_LAB_ADMIN_TOKEN": TOKEN})
    with ScriptedModel(script(str(person.own_solution()))) as model:
        person.behind(model.url)
        assert "connected, by its own word" in person.lab("attach", name, "--http", lab.url)
        person.ask("Measure my kernel.")
        assert "PASSED" in json.dumps(model.turns[-1].body) and set(recorded(lab.root)) == {"PASSED"}
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()]
