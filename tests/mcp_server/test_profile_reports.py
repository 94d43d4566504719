"""Reports made elsewhere, through both doors: the verb at a terminal and the MCP tool."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from mcp_server import lessons
from mcp_server.__main__ import main
from mcp_server.lab import Lab
from mcp_server.server import build_server
from mcp_server.workspace import Workspace
from tests.mcp_server.test_server import facts, refusal, structured, text

DATA = Path(__file__).parents[1] / "data"
DETAILS = (DATA / "ncu/details.csv").read_text()

pytestmark = pytest.mark.anyio


class Verb:
    """`kernel-lab profile` on one root."""

    def __init__(self, root: Path, capture: pytest.CaptureFixture[str]) -> None:
        self._root = root
        self._capture = capture

    def __call__(self, *words: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["--root", str(self._root), "profile", *words])
        printed = self._capture.readouterr()
        return int(ended.value.code or 0), printed.out, printed.err

    def answer(self, *words: str) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self(*words, "--json")[1])
        return answer


@pytest.fixture
async def client(lab: Lab) -> AsyncGenerator[Client]:
    async with Client(build_server(lab), raise_exceptions=True) as client:
        yield client


@pytest.fixture
def profile(root: Path, capsys: pytest.CaptureFixture[str]) -> Verb:
    return Verb(root, capsys)


def test_a_file_from_anywhere_is_digested_at_a_terminal(profile: Verb) -> None:
    status, out, _ = profile(str(DATA / "ncu/details.csv"))
    assert status == 0
    assert "memory: device memory at 82% of peak (2750 GB/s)" in out
    assert "stride_copy: 2 x 1000 us" in out and "2048 blocks of 128 x 2" in out
    assert "lesson gpu/coalesce-global-accesses" in out


def test_the_structured_answer_has_a_line_a_kernel_and_the_lessons(profile: Verb) -> None:
    answer = profile.answer(str(DATA / "ncu/details.csv"))
    copy, small = answer["kernels"]
    assert (copy["name"], copy["launches"], copy["registers"]) == ("stride_copy", 2, 40)
    assert "registers" not in small and "occupancy" not in small  # not measured
    assert answer["bottleneck"] == "memory" and answer["launches"] == 3
    assert [line["slug"] for line in answer["lessons"]] == ["gpu/coalesce-global-accesses"]
    assert any("missing" in note for note in answer["notes"])


def test_two_files_say_what_changed(profile: Verb, tmp_path: Path) -> None:
    later = tmp_path / "later.csv"
    later.write_text(DETAILS.replace('"1,250.00"', '"500.00"').replace('"750.00"', '"500.00"'))
    answer = profile.answer(str(DATA / "ncu/details.csv"), str(later))
    assert "kernel time 2,020.0 us to 1,020.0 us" in answer["verdict"]
    assert "stride_copy: duration_us 1,000.0 us to 500.0 us (0.5x)" in answer["changes"]


def test_a_former_profile_of_the_lab_is_compared_by_its_job(profile: Verb) -> None:
    first = profile.answer(str(DATA / "callgrind/colsum.out"))
    assert (first["tool"], first["instructions"]) == ("callgrind", 536266)
    assert [line["slug"] for line in first["lessons"]] == ["cpu/register-tile"]
    again = profile.answer(first["job"], str(DATA / "callgrind/colsum.out"))
    assert again["verdict"].startswith("instructions 536,266 to 536,266 (1x)") and "changes" not in again


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("no-such.ncu-rep",), "no report 'no-such.ncu-rep'"),
        (("j000000000000",), "no report 'j000000000000'"),
        ((str(DATA / "ncu/no_permission.txt"),), "NVreg_RestrictProfilingToAdminUsers"),
        ((str(DATA / "ncu/no_kernels.txt"),), "ends with a slash"),
        ((str(DATA / "ncu"),), "no report"),
        ((__file__,), "of no kind that is read here"),
    ],
)
def test_what_cannot_be_read_is_one_line_and_status_2(profile: Verb, words: tuple[str, ...], complaint: str) -> None:
    status, out, err = profile(*words)
    lines = [line for line in err.splitlines() if line not in ("queued", "reading")]
    assert (status, out) == (2, "") and len(lines) == 1 and complaint in lines[0]


async def test_the_tool_digests_and_compares_what_lies_in_the_workspace(client: Client, root: Path) -> None:
    (root / "a.csv").write_text(DETAILS)
    (root / "b.csv").write_text(DETAILS.replace('"81.50"', '"20.00"').replace('"12.25"', '"91.00"'))
    first = await structured(client, "profile", path=str(root / "a.csv"))
    assert first["bottleneck"] == "memory" and first["kernels"][0]["name"] == "stride_copy"
    second = await structured(client, "profile", path=str(root / "b.csv"), against=first["job"])
    assert "limited by memory before and by compute now" in second["verdict"]


@pytest.mark.parametrize(
    "name", ["ncu/details.csv", "ncu/raw.csv", "rocprof/kernel_trace_70.csv", "rocprof/results.json"]
)
async def test_the_text_of_a_report_says_what_the_structured_half_says(client: Client, root: Path, name: str) -> None:
    path = root / Path(name).name
    path.write_bytes((DATA / name).read_bytes())
    result = await client.call_tool("profile", {"path": str(path)})
    answer: dict[str, Any] = result.structured_content or {}
    answer.update(kind="", state="")
    assert [fact for fact in facts(answer) if fact not in text(result)] == []


async def test_the_tool_reads_no_file_outside_the_workspace(client: Client) -> None:
    assert "outside the allowed folders" in await refusal(client, "profile", path="/etc/passwd")
    assert "`against` compares two reports" in await refusal(
        client, "profile", task="scale", path="naive", against="a.csv"
    )


def test_lessons_match_by_symptom_in_the_order_of_the_symptoms(root: Path) -> None:
    found = lessons.matching(Workspace(root), ["small_grid", "uncoalesced", "no_such"], 3)
    assert [one.slug for one in found] == ["gpu/fill-the-device", "gpu/coalesce-global-accesses"]
