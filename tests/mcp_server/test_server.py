"""The lab through the front door: an MCP client of either era."""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any, Literal, cast

import anyio
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.types import CallToolResult, PromptReference, ResourceTemplateReference, TextContent

from mcp_server.budgets import Caps
from mcp_server.callers import Callers
from mcp_server.lab import Lab
from mcp_server.server import build_server
from tests.mcp_server.conftest import RIGHT, command_line, descendants, write_solution

pytestmark = pytest.mark.anyio

READS = {"list_tasks", "describe_task", "get_result", "read_lessons", "read_history", "devices", "wait_role", "plot"}
WRONG = "for (int64_t i = 0; i < n; ++i) y[i] = x[i];"
CHATTY = 'for (int i = 0; i < 2000; ++i) printf("%0100d\\n", i);'


@pytest.fixture
async def client(lab: Lab) -> AsyncGenerator[Client]:
    async with Client(build_server(lab), raise_exceptions=True) as client:
        yield client


def text(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


async def structured(client: Client, tool: str, **arguments: object) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text(result)
    assert result.structured_content is not None
    assert len(json.dumps(result.structured_content)) < 10_000 and len(text(result)) < 10_000
    return result.structured_content


async def refusal(client: Client, tool: str, **arguments: object) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error and result.structured_content is None
    return text(result)


def as_role(lab: Lab, token: str = "role token", evaluations: int = 0) -> Client:
    """A client whose environment holds the token of a new role of run `r`."""
    lab.ledger.open_run("r", "scale", {})
    lab.ledger.add_role(
        "r", 1, token[:4], "tuner", token, Caps(evaluations=evaluations), lab.workspace.role_folder("r", 1, "role")
    )
    lab.callers = Callers(lab.ledger, local_token=token)
    return Client(build_server(lab))


def as_admin(lab: Lab) -> Client:
    lab.callers = Callers(lab.ledger, admin_token="admin", local_token="admin")
    return Client(build_server(lab))


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_one_candidate_from_the_list_of_tasks_to_a_recorded_result(
    lab: Lab, mode: Literal["legacy", "auto"]
) -> None:
    async with Client(build_server(lab), mode=mode) as client:
        assert "scale" in [line["name"] for line in (await structured(client, "list_tasks"))["tasks"]]
        described = await structured(client, "describe_task", task="scale")
        assert described["c_signature"] == 'extern "C" void run(const float* x, float a, float* y, int64_t n)'
        path = next(line["path"] for line in described["solutions"] if line["name"] == "naive")
        assert (await structured(client, "compile", task="scale", path=path))["ok"] is True
        done = await structured(client, "benchmark", task="scale", path=path)
        assert done["status"] == "PASSED" and done["passed"] == done["total"] == 2
        assert done["speedup"]["low"] <= done["speedup"]["value"] <= done["speedup"]["high"]
        by_job = await structured(client, "get_result", id=done["job"])
        by_evaluation = await structured(client, "get_result", id=done["evaluation"])
        assert by_job == by_evaluation == done
        [event] = (await structured(client, "read_history", kinds=["evaluation"]))["events"]
        assert event["body"]["evaluation"] == done["evaluation"] and event["body"]["variant"] == "naive"
        assert "BenchmarkResult" not in Path(done["log_path"]).read_text(encoding="utf-8")


async def test_every_kind_of_bad_candidate_is_one_clear_result_and_the_next_call_works(
    client: Client, lab: Lab
) -> None:
    bodies = {
        "wrong": (WRONG, "INCORRECT_NUMERICAL"),
        "broken": ("y[i] = 0;", "COMPILE_ERROR"),
        "endless": ("for (volatile int go = 1; go;) {}", "TIMEOUT"),
        "segfault": ("*(volatile float*)8 = 0;", "RUNTIME_ERROR"),
        "chatty": (CHATTY + WRONG, "INCORRECT_NUMERICAL"),
        "right": (RIGHT, "PASSED"),
    }
    for name, (body, status) in bodies.items():
        path = write_solution(lab.workspace.root / "mine" / name, body)
        result = await client.call_tool("benchmark", {"task": "scale", "path": path, "mode": "check"})
        answer: dict[str, Any] = result.structured_content or {}
        assert answer["status"] == status, text(result)
        assert len(text(result)) < 4_000 and len(json.dumps(answer)) < 4_000
        assert status in text(result) and answer["evaluation"] in text(result)
        assert status == "PASSED" or answer["summary"] in text(result)


def facts(value: Any) -> Iterator[str]:
    """Every line of text in a structured answer."""
    if isinstance(value, dict):
        for item in cast(dict[str, Any], value).values():
            yield from facts(item)
    elif isinstance(value, list):
        for item in cast(list[Any], value):
            yield from facts(item)
    elif isinstance(value, str):
        yield from value.strip().splitlines()


async def test_the_text_alone_says_what_the_structured_half_says(client: Client, lab: Lab) -> None:
    wrong = write_solution(lab.workspace.root / "wrong", WRONG)
    broken = write_solution(lab.workspace.root / "broken", "y[i] = 0;")
    calls: list[tuple[str, dict[str, object]]] = [
        ("list_tasks", {}),
        ("describe_task", {"task": "rmsnorm"}),
        ("devices", {}),
        ("read_lessons", {"query": "vector"}),
        ("compile", {"task": "scale", "path": broken}),
        ("benchmark", {"task": "scale", "path": broken}),
        ("benchmark", {"task": "scale", "path": wrong}),
        ("benchmark", {"task": "scale", "path": "naive"}),
        ("profile", {"task": "scale", "path": "naive"}),
        ("read_history", {}),
    ]
    for tool, arguments in calls:
        result = await client.call_tool(tool, arguments)
        said = text(result)
        answer: dict[str, Any] = result.structured_content or {}
        answer.update(kind="", state="", task="", stage="")
        assert [fact for fact in facts(answer) if fact not in said] == [], f"{tool} {arguments}: {said}"


async def test_a_compile_error_names_file_line_and_message(client: Client, lab: Lab) -> None:
    path = write_solution(lab.workspace.root / "mine", "y[i] = 0;")
    answer = await structured(client, "compile", task="scale", path=path)
    assert answer["ok"] is False
    assert re.fullmatch(r"\S*kernel.cpp:4:\d+", answer["diagnostics"][0]["where"])
    assert "'i' was not declared" in answer["diagnostics"][0]["message"]


async def test_work_that_is_not_done_in_time_gives_its_job_and_progress(client: Client, lab: Lab) -> None:
    heard: list[str | None] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(message)

    path = write_solution(lab.workspace.root / "mine", RIGHT)
    at_once = await structured(client, "compile", task="scale", path=path, wait_s=0)
    assert at_once["state"] in ("queued", "running") and at_once["job"] in at_once["summary"]
    late = await client.call_tool("get_result", {"id": at_once["job"]}, progress_callback=hear)
    assert (late.structured_content or {})["ok"] is True
    assert heard


@pytest.mark.parametrize(
    ("tool", "arguments", "complaint"),
    [
        ("describe_task", {"task": "scal"}, "did you mean 'scale'"),
        ("benchmark", {"task": "scale", "path": "/etc"}, "outside the allowed folders"),
        ("benchmark", {"task": "scale", "path": "naiv"}, "did you mean 'naive'"),
        ("benchmark", {"task": "scale", "path": "naive", "baseline": "fast"}, "no folder"),
        ("benchmark", {"task": "scale", "path": "naive", "mode": "quick"}, "'check', 'full' or 'sanitize'"),
        (
            "benchmark",
            {"task": "scale", "path": "naive", "tresh": 1},
            "unknown argument `tresh`: did you mean `fresh`?",
        ),
        ("compile", {"task": "scale"}, "argument `path` is missing"),
        ("profile", {"task": "scale"}, "give either"),
        ("profile", {"task": "scale", "path": "naive", "workload": "huge"}, "it has small, large"),
        ("get_result", {"id": "j123"}, "no job 'j123'"),
        ("get_result", {"id": "e123"}, "no evaluation 'e123'"),
        ("get_result", {"id": "\ud800"}, "send whole characters"),
        ("read_lessons", {"slug": "no/such"}, "no lesson"),
        ("add_lesson", {"slug": "X", "title": "t", "symptom": "s", "cause": "c", "remedy": "r"}, "topic/name"),
        ("read_history", {"run": "nowhere"}, "no run 'nowhere'"),
        ("open_run", {"run": "r", "task": "scale", "config": "{}"}, "administrator"),
        ("write_history", {"kind": "winner", "body": "{}"}, "only kind 'note'"),
        ("write_history", {"kind": "note", "body": json.dumps({"text": "x" * 5000})}, "put the rest in a file"),
        ("spawn_role", {"name": "x", "charter": "do"}, "must name the `task`"),
        ("wait_role", {"role": "r123"}, "no role 'r123'"),
    ],
)
async def test_a_mistake_of_the_caller_is_one_error_that_says_what_to_do(
    client: Client, tool: str, arguments: dict[str, object], complaint: str
) -> None:
    assert complaint in await refusal(client, tool, **arguments)


async def test_every_tool_has_a_closed_schema_annotations_and_a_short_description(client: Client) -> None:
    listed = (await client.list_tools()).tools
    assert len(listed) == 17
    for tool in listed:
        assert re.fullmatch(r"[a-z_]{3,40}", tool.name)
        assert tool.input_schema["type"] == "object" and tool.input_schema["additionalProperties"] is False
        assert "$ref" not in json.dumps(tool.input_schema)
        assert tool.name == "plot" or (tool.output_schema and tool.output_schema["type"] == "object")
        assert tool.description and len(tool.description) < 2_000
        assert tool.annotations
        assert tool.annotations.read_only_hint is (tool.name in READS)
        assert tool.annotations.destructive_hint is False and tool.annotations.open_world_hint is False
    assert len(client.instructions or "") in range(500, 2_048)


async def test_a_role_is_credited_by_its_token_and_stops_at_its_evaluations(lab: Lab) -> None:
    async with as_role(lab, evaluations=1) as client:
        path = write_solution(lab.workspace.root / "mine", "broken")
        await structured(client, "benchmark", task="scale", path=path)
        assert "all 1 evaluations" in await refusal(client, "benchmark", task="scale", path=path)
        await structured(client, "describe_task", task="scale")
    [role] = lab.ledger.roles("r")
    assert lab.ledger.count_evaluations("r", role.id) == 1
    assert lab.ledger.reads("r", role.id) == ["task:scale"]


async def test_parallel_calls_of_a_role_share_its_budget_and_joining_costs_none(lab: Lab) -> None:
    paths = [write_solution(lab.workspace.root / name, f"{RIGHT} // {name}") for name in ("one", "two")]
    answers: list[CallToolResult] = []

    async def benchmark(client: Client, path: str) -> None:
        answers.append(await client.call_tool("benchmark", {"task": "scale", "path": path, "wait_s": 0}))

    async with as_role(lab, evaluations=1) as client:
        async with anyio.create_task_group() as calls:
            for path in paths:
                calls.start_soon(benchmark, client, path)
        refused, started = sorted(answers, key=lambda answer: not answer.is_error)
        assert "all 1 evaluations" in text(refused)
        [job] = {answer.structured_content["job"] for answer in answers if answer.structured_content}
        again = [await client.call_tool("benchmark", {"task": "scale", "path": p, "wait_s": 0}) for p in paths]
        assert {answer.structured_content["job"] for answer in again if answer.structured_content} == {job}
        await structured(client, "cancel", job=job)
        assert not started.is_error


async def test_the_relative_path_of_a_role_starts_at_its_worktree(lab: Lab) -> None:
    async with as_role(lab) as client:
        write_solution(lab.workspace.role_folder("r", 1, "role") / "worktree" / "v1", "broken")
        assert (await structured(client, "benchmark", task="scale", path="v1"))["status"] == "COMPILE_ERROR"
        assert "no folder" in await refusal(client, "benchmark", task="scale", path="v2")


async def test_the_judge_starts_with_the_run_and_not_with_its_first_evaluation(lab: Lab) -> None:
    async with as_admin(lab) as client:
        await structured(client, "open_run", run="night", task="scale", config="{}")
        [start] = [task for task in asyncio.all_tasks() if task.get_name() == "start of the judge"]
        await start
        assert any("toolkits.core.judge" in command_line(pid) for pid in descendants(os.getpid()))


async def test_a_role_writes_notes_and_no_more(lab: Lab) -> None:
    async with as_role(lab) as client:
        await structured(client, "write_history", kind="note", body='{"text": "tiles of 8 are best"}')
        assert "only kind 'note'" in await refusal(client, "write_history", kind="winner", body="{}")
        assert "administrator" in await refusal(client, "open_run", run="s", task="scale", config="{}")
        [note] = (await structured(client, "read_history", kinds=["note"]))["events"]
        assert note["body"] == {"text": "tiles of 8 are best"}


async def test_a_role_that_has_ended_is_told_so(lab: Lab) -> None:
    async with as_role(lab) as client:
        [role] = lab.ledger.roles("r")
        lab.ledger.set_role(role.id, "done")
        assert "no running role" in await refusal(client, "describe_task", task="scale")


async def test_the_administrator_opens_a_run_and_acts_for_it(lab: Lab) -> None:
    async with as_admin(lab) as client:
        opened = await structured(client, "open_run", run="night", task="scale", config='{"seed": 3}')
        assert opened["created"] is True and Path(opened["folder"]).is_dir()
        for number in range(3):
            await structured(client, "write_history", kind="plateau", body=json.dumps({"number": number}))
        again = await structured(client, "open_run", run="night", task="scale", config="{}")
        assert again["created"] is False and again["config"] == {"seed": 3}
        first = await structured(client, "read_history", limit=2)
        rest = await structured(client, "read_history", after=first["next_after"], limit=2)
        assert [event["seq"] for event in first["events"] + rest["events"]] == [1, 2, 3, 4]
        assert (first["more"], rest["more"]) == (True, False)
        assert "JSON" in await refusal(client, "write_history", kind="plateau", body="no json")


async def test_a_lesson_is_kept_and_found_again(client: Client) -> None:
    lesson = {"title": "Mask the tail", "symptom": "a crash at odd sizes", "cause": "a full tile", "remedy": "a mask"}
    added = await structured(client, "add_lesson", slug="simd/mask-the-tail", op=["elementwise"], **lesson)
    assert Path(added["path"]).is_file()
    found = await structured(client, "read_lessons", query="crash odd sizes mask")
    assert found["lessons"][0]["slug"] == "simd/mask-the-tail" and "a full tile" in found["text"]
    assert "exists already" in await refusal(client, "add_lesson", slug="simd/mask-the-tail", **lesson)


async def test_prompts_resources_and_completions_offer_what_the_tools_do(client: Client, lab: Lab) -> None:
    prompts = (await client.list_prompts()).prompts
    assert {prompt.name for prompt in prompts} == {"optimise", "diagnose"}
    optimise = await client.get_prompt("optimise", {"task": "scale"})
    assert "torch_out" in str(optimise.messages[0].content)
    assert [str(resource.uri) for resource in (await client.list_resources()).resources] == ["kernel-lab://tasks"]
    task = await client.read_resource("kernel-lab://tasks/scale")
    assert "y = a * x" in str(task.contents[0])
    with pytest.raises(MCPError, match="no task"):
        await client.read_resource("kernel-lab://tasks/nope")
    completed = await client.complete(PromptReference(name="optimise"), {"name": "task", "value": "sc"})
    assert completed.completion.values == ["scale"]
    lessons = ResourceTemplateReference(uri="kernel-lab://lessons/{topic}/{name}")
    topics = await client.complete(lessons, {"name": "topic", "value": ""})
    assert set(topics.completion.values) == {slug.split("/")[0] for slug in lab.workspace.lesson_files()}


async def test_another_server_on_the_same_root_gives_the_result_over_stdio(client: Client, root: Path) -> None:
    path = write_solution(root / "mine", RIGHT)
    built = await structured(client, "compile", task="scale", path=path)
    command = ["-P", "-m", "mcp_server", "serve", "--root", str(root)]
    async with Client(StdioServerParameters(command=sys.executable, args=command, cwd="/")) as other:
        assert await structured(other, "get_result", id=built["job"]) == built
        again = await structured(other, "compile", task="scale", path=path)
        assert again["ok"] is True and again["cached"] is True


def test_a_server_imports_no_tensor_library_and_no_terminal(root: Path) -> None:
    heavy = {"torch", "triton", "cupy", "optuna", "numpy", "typer", "rich"}
    code = (
        "import sys; from pathlib import Path; from mcp_server.serving import open_lab, server_of;"
        f"server_of(open_lab(Path({str(root)!r}))); print({heavy!r} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
