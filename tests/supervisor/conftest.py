"""Synthetic evaluations and histories: what the supervisor reads, without a lab."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from mcp_server.schema import HistoryLine
from supervisor.schema import Evaluation, TaskFacts
from toolkits.core.schema import Interval, Json, Status, Tunable, Verdict

MakeEvaluation = Callable[..., Evaluation]


def interval(value: float, half: float = 0.02) -> Interval:
    """`value` with a relative half width."""
    return Interval(value=value, low=value * (1 - half), high=value * (1 + half))


@pytest.fixture
def evaluation() -> MakeEvaluation:
    """An evaluation that passed with `value`, or failed when `value` is None."""
    numbers = iter(range(1, 10_000))

    def make(value: float | None = None, half: float = 0.02, **fields: object) -> Evaluation:
        number = next(numbers)
        known: Json = {
            "id": f"e{number}",
            "seq": number,
            "at_s": 4.0 * number,
            "role": "tuner",
            "purpose": "search",
            "team": 1,
            "solution": f"s{number}",
            "mode": "full",
            "status": Status.PASSED if value else Status.INCORRECT_NUMERICAL,
            "cause": "" if value else "mismatch",
            "verdict": (Verdict.FASTER if value > 1 else Verdict.SLOWER) if value else None,
            "speedup": interval(value, half) if value else None,
            "seconds": 4.0,
        }
        return Evaluation.model_validate(known | fields)

    return make


@pytest.fixture
def curve(evaluation: MakeEvaluation) -> Callable[[Sequence[float], int, float], list[Evaluation]]:
    """True speedups as a lab with noise sees them: `sigma` is relative, the interval covers 99 %."""

    def make(true: Sequence[float], seed: int, sigma: float) -> list[Evaluation]:
        draw = random.Random(seed)
        seen = [value * math.exp(draw.gauss(0, sigma)) for value in true]
        return [evaluation(value, 2.576 * sigma, parameters={"T": n}) for n, value in enumerate(seen)]

    return make


@pytest.fixture
def facts() -> TaskFacts:
    tile = Tunable(values=[1, 2, 4, 8, 16], default=1)
    return TaskFacts(
        name="toy",
        start="naive",
        start_path="/toy/naive",
        baseline="torch",
        variants={"a": {"T": tile, "U": tile}, "b": {"T": tile, "U": tile}},
    )


@dataclass
class History:
    """Rows as the server would write them, a second apart."""

    rows: list[HistoryLine] = field(default_factory=list[HistoryLine])
    at: datetime = datetime(2026, 1, 1, tzinfo=UTC)

    def add(self, kind: str, body: Json | None = None, role: str = "", after_s: float = 1.0) -> HistoryLine:
        self.at += timedelta(seconds=after_s)
        row = HistoryLine(seq=len(self.rows) + 1, at=self.at.isoformat(), role=role, kind=kind, body=body or {})
        self.rows.append(row)
        return row

    def evaluation(self, id: str, value: float | None, role: str = "", solution: str = "", **fields: object) -> None:
        """A row like the lab's own, with more fields than the supervisor reads."""
        speedup = interval(value).model_dump() if value else None
        body: Json = {
            "evaluation": id,
            "task": "toy",
            "solution": solution or f"s-{id}",
            "mode": "full",
            "status": "PASSED" if value else "INCORRECT_NUMERICAL",
            "verdict": ("faster" if value > 1 else "slower") if value else None,
            "speedup": speedup,
            "worst": value,
            "cause": "" if value else "mismatch",
            "record": "digest",
            "path_name": id,
            "parameters": {},
            "toolkit": "cpp",
            "variant": "",
            "seconds": 2.0,
        }
        self.add("evaluation", body | fields, role)


@pytest.fixture
def history() -> History:
    opened = History()
    opened.add("run_opened", {"task": "toy", "config": {}})
    opened.add("session_started", {"device": "a CPU"})
    return opened
