"""New content for every call: what a candidate sees, and the pieces that make it cheap."""

from collections.abc import Callable

import pytest
import torch

from tests.toolkits.conftest import BASELINE, LOOP, Evaluate, cpp, python
from toolkits.core.judge import caches
from toolkits.core.judge.agreement import agree
from toolkits.core.judge.content import Draw
from toolkits.core.schema import Axis, Status, Task

Change = Callable[[torch.Tensor], torch.Tensor]


@pytest.mark.anyio
async def test_no_row_is_ever_seen_twice(evaluate: Evaluate) -> None:
    remembers = BASELINE.replace("def scale", "seen = set()\n\ndef scale") + (
        "    rows = {row.numpy().tobytes() for row in x}\n"
        "    assert not rows & seen or x.shape[1] == 33, 'seen before'\n"  # the last small round is run twice
        "    seen.update(rows)\n"
    )
    result = await evaluate(python(remembers), "full")
    assert result.status is Status.PASSED and result.measurements[0].pairs >= 8, result.detail


@pytest.mark.anyio
async def test_a_memory_of_rows_is_no_use_and_of_whole_inputs_is_caught(evaluate: Evaluate) -> None:
    by_address = BASELINE.replace("def scale", "known = {}\n\ndef scale").replace(
        "torch.mul(x, factor, out=y)", "y.copy_(known.setdefault((x.data_ptr(), x.shape), x * factor))"
    )
    assert (await evaluate(python(by_address), "full")).status in (Status.REWARD_HACK, Status.INCORRECT_NUMERICAL)


@pytest.mark.anyio
async def test_speed_with_empty_caches_stands_beside_the_warm_one(evaluate: Evaluate) -> None:
    result = await evaluate(cpp(LOOP), "full")
    cold = result.measurements[0].cold
    assert cold and cold.pairs == 2 and cold.speedup is None and cold.latency_us > 0 and cold.ratio == result.cold_ratio


def test_draws_are_normal_new_and_follow_their_generator() -> None:
    first, again = (Draw(torch.Generator().manual_seed(7)) for _ in range(2))
    one, other = first.normal(torch.empty(500, 200)), first.normal(torch.empty(500, 200))
    assert abs(float(one.mean())) < 0.02 and abs(float(one.std()) - 1) < 0.02
    assert not bool((one == other).any()) and torch.equal(one, again.normal(torch.empty(500, 200)))
    assert first.normal(torch.empty(3, dtype=torch.bfloat16)).dtype is torch.bfloat16
    assert first.normal(torch.empty(0)).numel() == 0
    large = first.normal(torch.empty(5_000_000))
    assert abs(float(large.std()) - 1) < 0.01


def test_emptying_caches_changes_no_value() -> None:
    tensors = [torch.arange(100_003.0), torch.empty(0), torch.ones(1, dtype=torch.bool)]
    caches.empty(tensors)
    assert torch.equal(tensors[0], torch.arange(100_003.0)) and bool(tensors[2])
    assert caches.describe()


def _scaled(factor: float) -> Change:
    def change(y: torch.Tensor) -> torch.Tensor:
        return y * factor

    return change


def _with_a_column_of(value: float) -> Change:
    def change(y: torch.Tensor) -> torch.Tensor:
        return y.index_fill(1, torch.tensor([5]), value)

    return change


def _rolled(y: torch.Tensor) -> torch.Tensor:
    return y.roll(1, 0)


@pytest.mark.parametrize(
    ("change", "agreed"),
    [
        (_scaled(1), True),
        (_scaled(1 + 1e-6), True),
        (_scaled(1 + 1e-4), False),
        (_with_a_column_of(float("nan")), False),
        (_with_a_column_of(float("inf")), False),
        (_rolled, False),
    ],
)
def test_answers_agree_within_what_both_may_be_wrong(task: Task, change: Change, agreed: bool) -> None:
    y = torch.randn(40, 50)
    assert agree(task, {"y": change(y)}, {"y": y}, 1.0) is agreed


def test_infinities_that_both_have_are_agreement(task: Task) -> None:
    y = torch.randn(40, 50)
    y[3] = float("-inf")
    assert agree(task, {"y": y.clone()}, {"y": y}, 1.0)
    assert not agree(task, {"y": y.nan_to_num(neginf=0.0)}, {"y": y}, 1.0)


def test_one_wrong_row_is_no_agreement_where_it_is_looked_at(task: Task) -> None:
    """All rows of what is small, else a random quarter; a full look at known content comes beside it anyway."""
    for rows, least, most in ((1000, 200, 200), (4000, 20, 90)):
        wrong = (y := torch.randn(rows, 50)).clone()
        wrong[rows // 3] *= 1.01
        seen = sum(not agree(task, {"y": wrong}, {"y": y}, 1.0) for _ in range(200))
        assert least <= seen <= most
    assert not agree(task, {"y": 1.01 * y}, {"y": y}, 1.0) and agree(task, {"y": y.clone()}, {"y": y}, 1.0)


def test_new_content_has_as_many_bits_as_drawn_content() -> None:
    values = Draw(torch.Generator()).normal(torch.empty(100_000))
    small = values[values.abs() < 0.06]
    assert 0.2 < float((small.view(torch.int32) & 3 == 0).float().mean()) < 0.3


def test_a_drawn_range_belongs_to_an_axis_that_varies() -> None:
    assert Axis(type="var", drawn=(1, 5)).drawn == (1, 5)
    for wrong in ({"type": "const", "value": 3, "drawn": (1, 5)}, {"type": "var", "drawn": (5, 1)}):
        with pytest.raises(ValueError, match="drawn"):
            Axis.model_validate(wrong)
