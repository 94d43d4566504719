"""What a warm evaluation costs over the kernels themselves, through the MCP tools, and where the rest goes."""

import statistics
import time
from pathlib import Path

from mcp import Client
from rich.console import Console
from rich.table import Table

from mcp_server.server import build_server
from mcp_server.serving import open_lab
from toolkits.core.schema import BenchmarkResult

REPEATS = 7
SUBJECTS = (("rmsnorm", "simd"), ("kmeans_assign", "panels"), ("kda_prefill", "rows"), ("relpos_txl_fwd", "band"))


async def measure(console: Console, root: Path) -> None:
    """One row a task: the second and later benchmarks of a built solution."""
    table = Table(title=f"warm benchmark, median of {REPEATS}, milliseconds", title_justify="left")
    for column in ("task", "whole call", "kernels", "over (aim: 50)", "where it goes"):
        table.add_column(column, justify="left" if column in ("task", "where it goes") else "right")
    lab = open_lab(root)
    async with Client(build_server(lab)) as client:
        for task, solution in SUBJECTS:
            await _call(client, task, solution)
            calls = [await _measured(client, lab.ledger.evaluation, task, solution) for _ in range(REPEATS)]
            table.add_row(task, *_row(calls))
    await lab.close()
    console.print(table)


def _row(calls: list[tuple[float, BenchmarkResult]]) -> list[str]:
    whole = statistics.median(ms for ms, _ in calls)
    kernels = statistics.median(result.kernel_ms for _, result in calls)
    over = statistics.median(ms - result.kernel_ms for ms, result in calls)
    judge = {
        name: statistics.median(r.overhead_ms.get(name, 0.0) for _, r in calls) for name in calls[0][1].overhead_ms
    }
    server = over - sum(judge.values())
    parts = ", ".join(f"{name} {ms:.0f}" for name, ms in ({"server": server} | judge).items())
    return [f"{whole:.0f}", f"{kernels:.0f}", f"{over:.0f}", parts]


async def _call(client: Client, task: str, solution: str) -> str:
    answer = await client.call_tool("benchmark", {"task": task, "path": solution, "wait_s": 50})
    content = answer.structured_content
    assert content and not answer.is_error, answer
    return str(content["evaluation"])


async def _measured(client: Client, evaluation: object, task: str, solution: str) -> tuple[float, BenchmarkResult]:
    started = time.perf_counter()
    identifier = await _call(client, task, solution)
    ms = (time.perf_counter() - started) * 1e3
    return ms, evaluation(identifier).result  # type: ignore[operator]
