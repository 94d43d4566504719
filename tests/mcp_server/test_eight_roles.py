"""Eight roles at once on one server that does not talk over HTTP itself: what they measure and how long each waits."""

import json
import statistics
from datetime import datetime
from pathlib import Path

import pytest

from mcp_server.callers import Caller
from mcp_server.ledger import Ledger
from mcp_server.serving import open_lab
from tests.mcp_server.conftest import RIGHT, write_solution

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
ROLES = 8
RUN = "night"


def transcript(root: Path, name: str) -> Path:
    """Two checks of two solutions that nobody else has."""
    calls: list[str] = []
    for number in (1, 2):
        path = write_solution(root / name / str(number), f"/* {name} {number} */ {RIGHT}")
        arguments = {"task": "scale", "path": path, "mode": "check"}
        calls.append(json.dumps({"type": "tool_call", "tool": "benchmark", "arguments": arguments}))
    file = root / name / "calls.jsonl"
    file.write_text("\n".join(calls) + "\n", encoding="utf-8")
    return file


def waited_s(ledger: Ledger, role: str) -> float:
    """From asking to the end, all jobs of a role together."""
    jobs = [ledger.job(row.job) for row in ledger.evaluations(RUN, role)]
    times = [(datetime.fromisoformat(job.created_at), datetime.fromisoformat(job.heartbeat)) for job in jobs]
    return sum((ended - asked).total_seconds() for asked, ended in times)


async def test_eight_roles_share_the_device_fairly_and_every_evaluation_is_recorded_once(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANY_VENDOR_API_KEY", "sk-dummy-of-the-test")
    lab = open_lab(root)
    assert lab.keys["ANY_VENDOR_API_KEY"] == "sk-dummy-of-the-test"
    admin = Caller(run=RUN, admin=True)
    try:
        await lab.open_run(admin, RUN, "scale", "{}")
        charters = [f"---\ntranscript: {transcript(root, f'role{n}')}\n---\n" for n in range(ROLES)]
        roles = [await lab.spawn_role(admin, f"role{n}", text, "replay") for n, text in enumerate(charters)]
        for role in roles:
            while (ended := await lab.wait_role(role.role)).state == "running":
                pass
            assert (ended.state, ended.evaluations) == ("done", 2), ended.note
        recorded = lab.ledger.evaluations(RUN)
        assert len({row.solution for row in recorded}) == len(recorded) == 2 * ROLES
        waits = [waited_s(lab.ledger, role.role) for role in roles]
        assert max(waits) <= 2 * statistics.mean(waits), waits
    finally:
        await lab.close()
