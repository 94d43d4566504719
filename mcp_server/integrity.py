"""Whether a run's record still is what was written: the history chain, the results, and every measured source."""

from mcp_server.ledger import Ledger
from mcp_server.workspace import Workspace
from toolkits.core.errors import LabError

ALL = 1_000_000


def problems(workspace: Workspace, ledger: Ledger, run: str) -> list[str]:
    """What is wrong, in words; empty when nothing is."""
    ledger.run(run)
    measured = {(row.task, row.solution): row.id for row in ledger.evaluations(run, limit=ALL)}
    sources = [_source_problem(workspace, task, solution, id) for (task, solution), id in measured.items()]
    return ledger.verify_chain(run) + [problem for problem in sources if problem]


def _source_problem(workspace: Workspace, task: str, solution: str, evaluation: str) -> str:
    try:
        workspace.stored(solution, workspace.task(task))
    except LabError as error:
        return f"evaluation {evaluation}: {error}"
    return ""
