"""A little of `make bench-garbage`: the same garbage, the same look at what it left."""

import sys
from pathlib import Path

import pytest

from toolkits.core import process

CHECKOUT = Path(__file__).parents[2]


@pytest.mark.anyio
async def test_sixty_pieces_of_garbage_leave_nothing_and_the_next_honest_evaluation_is_right() -> None:
    done = await process.run([sys.executable, "-m", "bench.garbage", "60"], cwd=CHECKOUT, timeout_s=300)
    assert done.returncode == 0 and "nothing left; 6 honest evaluations right" in done.output, done.output
