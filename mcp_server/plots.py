"""A run or an evaluation as a picture. Drawn by a child process: the library that draws is large and optional."""

import re
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from mcp_server import plot_data
from mcp_server.callers import Caller
from mcp_server.catalogue import Catalogue
from toolkits.core import process
from toolkits.core.errors import HarnessError, ToolkitUnavailable

DRAW_S = 60.0
"""The first drawing on a machine looks through its fonts."""
_EVALUATION = re.compile(r"e[0-9a-f]{12}")


async def plot(lab: Catalogue, caller: Caller, of: str) -> bytes:
    """A PNG: of an evaluation its workloads, of a run its progress."""
    if not find_spec("matplotlib"):
        raise ToolkitUnavailable("plots need matplotlib: pip install 'kernel-lab[plot]' where the server runs")
    if _EVALUATION.fullmatch(of):
        shown = plot_data.of_evaluation(lab.ledger.evaluation(of))
    else:
        run = of or caller.run
        shown = plot_data.of_run(lab.ledger, lab.ledger.run(run).run if run else "")
    lab.note_read(caller, of or "history")
    return await _drawn(shown.model_dump_json(), lab.workspace.fonts)


async def _drawn(data: str, fonts: Path) -> bytes:
    with tempfile.TemporaryDirectory(prefix="kernel-lab-plot-") as folder:
        source, target = Path(folder, "data.json"), Path(folder, "plot.png")
        source.write_text(data, encoding="utf-8")
        command = [sys.executable, "-P", "-m", "mcp_server.plot_draw", str(source), str(target)]
        environment = {"PATH": "/usr/bin:/bin", "HOME": folder, "MPLCONFIGDIR": str(fonts)}
        done = await process.run(command, cwd=Path(folder), timeout_s=DRAW_S, env=environment)
        if done.returncode != 0:
            raise HarnessError(f"the plot was not drawn ({done.output[-300:].strip()}): read_history has its figures")
        return target.read_bytes()
