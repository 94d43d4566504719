"""Every cheat of the corpus is refused for the right reason, and every honest twin passes."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.cheats.corpus import Case, find_cases, judged
from toolkits.core.judge.client import Judge
from toolkits.core.sandbox import mechanism


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def judge() -> AsyncGenerator[Judge]:
    judge = Judge()
    yield judge
    await judge.close()


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("builds")


def _parameter(case: Case) -> object:
    why = case.spec.known_alarm if case.honest else case.spec.known_hole
    # A hole is there each time, an alarm only on a busy machine.
    marks = [pytest.mark.xfail(reason=why, strict=not case.honest)] if why else []
    return pytest.param(case, id=case.name, marks=marks)


@pytest.mark.anyio
@pytest.mark.parametrize("case", [_parameter(case) for case in find_cases()])
async def test_a_cheat_is_refused_and_its_honest_twin_passes(judge: Judge, builds: Path, case: Case) -> None:
    if case.spec.needs_box and not mechanism().bwrap and not case.honest:
        pytest.skip(mechanism().why_not)
    outcome = await judged(judge, case, builds)
    assert outcome.ok, f"{case.spec.does} Expected {case.expected}, got {outcome.got}: {outcome.detail}"


def test_the_corpus_is_large_enough_and_every_cheat_names_its_source() -> None:
    cases = find_cases()
    assert len({case.file.parent for case in cases if not case.honest}) >= 45
    assert len([case for case in cases if case.honest]) >= 25
    assert all(case.spec.does and case.spec.idea and case.spec.source and case.spec.expect for case in cases)
