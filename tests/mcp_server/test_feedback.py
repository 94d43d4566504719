"""What an agent is told of a candidate that failed: what helps it most, in at most 4 KB, in each half of the answer."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from mcp_server.excerpts import first_error, line_of
from mcp_server.feedback import MAX_BYTES, clipped, cost, fitted, size
from mcp_server.lab import Lab
from mcp_server.schema import (
    BenchmarkAnswer,
    CompileAnswer,
    DiagnosticLine,
    JobAnswer,
    KernelLine,
    LessonLine,
    ProfileAnswer,
    WorkloadLine,
)
from mcp_server.server import build_server
from tests.mcp_server.conftest import CPP, write_solution
from tests.mcp_server.test_server import text
from toolkits.core.schema import Diagnostic, HotLine, Status, Verdict

WIDE = "\N{PILE OF POO}"
"""Costs four bytes in UTF-8 and twelve where JSON is written in ASCII."""


@pytest.fixture
async def client(lab: Lab) -> AsyncGenerator[Client]:
    async with Client(build_server(lab), raise_exceptions=True) as client:
        yield client


async def _told(client: Client, tool: str, path: str, **arguments: object) -> tuple[dict[str, Any], str]:
    """Both halves of an answer, seen to be small."""
    result = await client.call_tool(tool, {"task": "scale", "path": path} | arguments)
    answer: dict[str, Any] = result.structured_content or {}
    assert not result.is_error and answer, text(result)
    assert len(json.dumps(answer)) <= MAX_BYTES and len(text(result).encode()) <= MAX_BYTES
    return answer, text(result)


def _python(folder: Path, body: str) -> str:
    folder.mkdir(parents=True)
    (folder / "solution.yaml").write_text("toolkit: python\nentry_point: kernel.py::run\n", encoding="utf-8")
    (folder / "kernel.py").write_text(body, encoding="utf-8")
    return str(folder)


# --- what is said -----------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_wrong_values_are_told_by_the_worst_element_the_pattern_and_the_round(client: Client, root: Path) -> None:
    body = "for (int64_t i = 0; i < n; ++i) y[i] = i % 8 == 3 ? 7.5f : a * x[i];"
    answer, said = await _told(client, "benchmark", write_solution(root / "mine", body), mode="check")
    for half in (answer["summary"], said):
        assert "INCORRECT_NUMERICAL" in half and "normal n=" in half
    for half in (answer["detail"], said):
        assert "worst at [" in half and "got 7.5, want " in half and "every 8th n from 3" in half


@pytest.mark.anyio
async def test_a_workload_that_fails_is_told_with_its_axes(client: Client, root: Path) -> None:
    body = "for (int64_t i = 0; i < n; ++i) y[i] = n > 400000 && i == n - 1 ? 0 : a * x[i];"
    answer, said = await _told(client, "benchmark", write_solution(root / "mine", body))
    assert "n=500000" in answer["failed_workload"] and "n=500000" in said, said
    skipped = [line for line in answer["workloads"] if line["status"] == "SKIPPED"]
    assert [line["workload"] for line in skipped] == ["large"] and "large: SKIPPED" in said


@pytest.mark.anyio
@pytest.mark.parametrize("tool", ["compile", "benchmark"])
async def test_a_compile_error_quotes_its_line_with_a_caret_and_counts_the_rest(
    client: Client, root: Path, tool: str
) -> None:
    path = write_solution(root / "mine", "\ty[0] = nowhere;\n  y[1] = neither;")
    answer, said = await _told(client, tool, path)
    line = 4  # of the function's body in conftest.py's CPP
    assert CPP.splitlines()[line - 1].strip() == "BODY"
    quoted = f"    {line} |         y[0] = nowhere;\n      |                ^\nand 1 further error"
    assert quoted in answer["summary"] and quoted in said, said


@pytest.mark.anyio
async def test_an_exception_is_told_with_the_line_that_raised_it(client: Client, root: Path) -> None:
    path = _python(root / "mine", "def run(x, a, y):\n    y.copy_(x[:-1])\n")
    answer, said = await _told(client, "benchmark", path, mode="check")
    assert answer["cause"] == "exception"
    for half in (answer["detail"], said):
        assert "    2 |     y.copy_(x[:-1])" in half and "RuntimeError" in half


@pytest.mark.anyio
async def test_a_crash_is_told_by_its_signal_and_the_last_output(client: Client, root: Path) -> None:
    body = 'for (int i = 0; i < 9000; ++i) printf("row %d\\n", i);\n  fflush(stdout); *(volatile float*)8 = 0;'
    answer, said = await _told(client, "benchmark", write_solution(root / "mine", body), mode="check")
    for half in (answer["detail"], said):
        assert "SIGSEGV" in half and "row 8999" in half
    assert answer["cause"] == "signal_11" and "invalid memory access" in answer["hint"]


def test_a_quoted_line_is_cut_around_its_column_and_wide_ones_are_no_trouble() -> None:
    source = {"a.cpp": "x" * 5000 + "!" + "y" * 5000}
    head, caret = line_of(source, "a.cpp", 1, 5001).split("\n")
    assert len(head) < 120 and head[caret.index("^")] == "!"
    assert line_of(source, "a.cpp", 2, 1) == "" and line_of(source, "/usr/include/x.h", 1, 1) == ""
    assert "12 further errors" in first_error([Diagnostic(severity="error", message="no")] * 13, {})


# --- how much is said -------------------------------------------------------------------------------------------------


@pytest.mark.anyio
@pytest.mark.parametrize("tool", ["compile", "benchmark"])
async def test_a_megabyte_of_hostile_compile_errors_fits(client: Client, root: Path, tool: str) -> None:
    shouts = "\n".join(f"#error {WIDE * 1000}{number}" for number in range(150))
    path = write_solution(root / "mine", f"\n{shouts}\n{'(' * 50_000}")
    answer, said = await _told(client, tool, path)
    assert "COMPILE_ERROR" in answer["summary"] and "COMPILE_ERROR" in said


@pytest.mark.anyio
async def test_an_exception_of_a_hundred_kilobytes_fits(client: Client, root: Path) -> None:
    path = _python(
        root / "mine", f"def run(x, a, y):\n    print({WIDE!r} * 100_000)\n    raise ValueError({WIDE!r} * 100_000)\n"
    )
    answer, said = await _told(client, "benchmark", path, mode="check")
    assert answer["status"] == "RUNTIME_ERROR" and "ValueError" in answer["detail"] and "ValueError" in said


LONG = WIDE * 100_000
HEAD: dict[str, Any] = {"job": "j123456789abc", "state": "done", "summary": LONG, "error": LONG}
LINE = WorkloadLine(workload=LONG, status=Status.PASSED, latency_us=1.5, baseline_us=2.5, speedup=1.6, low=1.5, high=2)
WORST: list[JobAnswer] = [
    BenchmarkAnswer(
        **HEAD,
        kind="benchmark",
        **dict.fromkeys(("detail", "hint", "failed_workload", "worst_workload", "baseline", "log_path", "cause"), LONG),
        workloads=[LINE.model_copy(update={"verdict": Verdict.FASTER})] * 500,
        warnings=[LONG] * 500,
        diagnostics=[DiagnosticLine(where=LONG, message=LONG)] * 500,
        status=Status.INCORRECT_NUMERICAL,
    ),
    CompileAnswer(**HEAD, kind="compile", log_path=LONG, diagnostics=[DiagnosticLine(where=LONG, message=LONG)] * 500),
    ProfileAnswer(
        **HEAD,
        kind="profile",
        **dict.fromkeys(("target", "bottleneck", "verdict", "raw_report", "tool"), LONG),
        hot_lines=[HotLine(file=LONG, line=1, share=0.5, source=LONG)] * 500,
        kernels=[KernelLine(name=LONG, launches=1, duration_us=1.5, launch=LONG, stall=LONG, verdict=LONG)] * 500,
        lessons=[LessonLine(slug=LONG, title=LONG, symptom=LONG)] * 500,
        **dict.fromkeys(("changes", "advice", "notes"), [LONG] * 500),
    ),
]


@pytest.mark.parametrize("answer", WORST, ids=lambda answer: type(answer).__name__)
def test_the_worst_answer_of_each_kind_fits_in_both_halves(answer: JobAnswer) -> None:
    told = fitted(answer)
    assert size(told) <= MAX_BYTES and told.job == "j123456789abc" and told.summary


def test_an_answer_that_fits_is_not_touched() -> None:
    answer = CompileAnswer(job="j1", kind="compile", state="done", summary="x" * 800, log_path="/a/b" * 100)
    assert fitted(answer) == answer


@pytest.mark.parametrize("character", ["x", "\u00fc", WIDE, "\0", '"'])
def test_a_clipped_text_keeps_head_and_tail_within_its_bytes(character: str) -> None:
    told = clipped(f"head{character * 10_000}tail", 200)
    assert cost(told) - 2 <= 200 and told.startswith("head") and told.endswith("tail")
