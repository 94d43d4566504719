"""Time from the start of a server process to its first tools/list answer, against a bare SDK server, in pairs."""

import statistics
import sys
import time
from pathlib import Path

from mcp import Client, StdioServerParameters
from rich.console import Console

PAIRS = 15


async def measure(console: Console, root: Path) -> None:
    """Print both medians and the median of the paired ratios."""
    bare = StdioServerParameters(command=sys.executable, args=["-P", str(Path(__file__).parent / "bare_server.py")])
    ours = StdioServerParameters(command=sys.executable, args=["-P", "-m", "mcp_server", "--root", str(root), "serve"])
    for server in (bare, ours):
        await _first_answer_s(server)  # fills the file cache for both
    pairs: list[tuple[float, float]] = []
    for number in range(PAIRS):
        order = (bare, ours) if number % 2 else (ours, bare)
        seconds = {server.args[-1]: await _first_answer_s(server) for server in order}
        pairs.append((seconds[bare.args[-1]], seconds[ours.args[-1]]))
    ratio = statistics.median(mine / peer for peer, mine in pairs)
    peer_ms, our_ms = (1e3 * statistics.median(column) for column in zip(*pairs, strict=True))
    console.print(f"start to first tools/list answer, median of {PAIRS} pairs:")
    console.print(f"  bare SDK server {peer_ms:.0f} ms, kernel-lab {our_ms:.0f} ms, ratio {ratio:.2f} (at most 1.30)")


async def _first_answer_s(server: StdioServerParameters) -> float:
    started = time.perf_counter()
    async with Client(server) as client:
        await client.list_tools()
        return time.perf_counter() - started
