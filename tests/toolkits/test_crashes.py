"""A C++ solution that dies is explained by a real gdb in the box: signal, line, arguments, backtrace."""

from pathlib import Path

import pytest

from mcp_server.callers import Caller, Callers
from mcp_server.lab import Lab
from mcp_server.ledger import Ledger
from mcp_server.workspace import Workspace
from tests.mcp_server.conftest import write_solution, write_task
from tests.toolkits.conftest import CPP, LOOP, cpp
from toolkits.core import crashes
from toolkits.core.schema import Solution, Task

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(bool(crashes.missing()), reason=f"this machine lacks {crashes.missing()}"),
]


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all: the driver is the same."""
    return tmp_path_factory.mktemp("builds")


HELPER = """
static __attribute__((noinline)) void store(float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    to[i] = 1;
}
"""


def _with_helper(body: str) -> Solution:
    head, tail = CPP.split('#include "task.h"')
    return cpp(body, sources={"main.cpp": f'{head}#include "task.h"{HELPER}{tail.replace("BODY", body)}'})


async def test_a_null_pointer_is_named_with_its_line_arguments_and_backtrace(task: Task, builds: Path) -> None:
    solution = _with_helper("store(rows == 64 ? nullptr : y, rows * columns);")
    told = await crashes.explained(task, solution, builds, "large rows=64 columns=33")
    head, *frames = told.splitlines()
    line = 1 + solution.sources["main.cpp"].splitlines().index("    to[i] = 1;")
    assert head.startswith("SIGSEGV at store(to=0x0, count=2112) at main.cpp:") and f"main.cpp:{line} " in head, told
    assert "large rows=64 columns=33" in head
    assert [frame.split("(")[0].strip() for frame in frames] == ["#0 store", "#1 scale"], told
    assert "rows=64, columns=33" in frames[1]


async def test_what_does_not_die_again_says_what_to_do(task: Task, builds: Path) -> None:
    told = await crashes.explained(task, cpp(LOOP), builds, "")
    assert "did not die again in 4 rounds" in told and "sanitize" in told


async def test_a_benchmark_of_a_kernel_that_writes_to_its_input_dies_and_shows_where(tmp_path: Path) -> None:
    write_task(tmp_path / "kernels" / "scale")
    path = write_solution(tmp_path / "kernels" / "scale" / "solutions" / "wild", "const_cast<float*>(x)[0] = a;")
    workspace = Workspace(tmp_path)
    lab = Lab(workspace, Callers(Ledger(workspace.database), admin_token="admin"))
    try:
        answer = await lab.benchmark(Caller(), "scale", path, "check", wait_s=None)
    finally:
        await lab.close()
    assert answer.cause == "signal_11" and "SIGSEGV at run(x=" in answer.detail, answer
    assert "kernel.cpp:4 (gdb, a build with -g" in answer.detail and "n=1" in answer.detail, answer
