"""May a task judge anybody? Its checks must refuse answers that compute nothing, and its reference must be a function.

Asked once when a task becomes warm, of the correctness rounds that are ready. A kernel has to pass every round, so an
answer that computes nothing is a danger only if it passes all of them, and still does on newly drawn content.
"""

# torch's stubs leave most Tensor methods partially unknown
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

import copy
import random
import secrets
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager

import torch

from toolkits.core.judge.compare import apply, check_outputs, first_bad
from toolkits.core.judge.inputs import Case, Reference, Values, draw, drawn, generator, with_expected
from toolkits.core.judge.worker import DTYPES
from toolkits.core.schema import Task

Tensor = torch.Tensor
Answer = Callable[[Case], Tensor]
"""What a kernel that computes nothing writes into one output."""
AGAIN = 20
"""So often must luck repeat itself: small rounds pass a wrong answer now and then."""


def refusal(task: Task, reference: Reference, rounds: list[Case]) -> str:
    """Why the task is not admitted and what to change, or empty. `rounds` are drawn cases with expected values."""
    if problem := _unchecked(task):
        return problem
    filled = [case for case in rounds if all(case.expected[name].numel() for name in task.outputs)]
    if not filled:
        return "every correctness round has outputs without elements: give sizes above zero"
    return (
        _not_a_function(task, reference, min(filled, key=_size))
        or _never_new(task, reference, max(filled, key=_size).axes)
        or _too_easy(task, reference, filled)
    )


def _size(case: Case) -> int:
    return sum(value.numel() for value in case.inputs.values() if isinstance(value, Tensor))


def _unchecked(task: Task) -> str:
    checked = {check.output for check in task.checks}
    for name, spec in task.outputs.items():
        if spec.shape is None:
            return f"output {name} has shape null: an output is memory that a kernel fills, so give it a shape"
        if name not in checked:
            return f"output {name} has no check, so anything passes: add one, or do not ask for the output"
    return ""


def _not_a_function(task: Task, reference: Reference, case: Case) -> str:
    """The reference on the same inputs again: no input may change, no random stream be used, and the answer agree."""
    before = copy.deepcopy(case.inputs)
    with _watched_streams() as touched:
        again = with_expected(task, reference, case)
    if changed := [name for name in before if not _same(before[name], case.inputs[name])]:
        return f"reference() changes its input {', '.join(changed)}: work on a copy"
    if touched():
        return "reference() uses or seeds the global random stream: it must be a function of its inputs alone"
    outputs = {name: case.expected[name].to(DTYPES[spec.dtype]) for name, spec in task.outputs.items()}
    if finding := check_outputs(task, again, outputs):
        return f"reference() disagrees with itself on the same inputs: it must depend on nothing else ({finding})"
    for name in task.outputs:
        if not bool(torch.isfinite(case.expected[name]).any()):
            return f"no value of output {name} is finite under distribution {case.distribution!r}: nothing to compare"
    return ""


def _never_new(task: Task, reference: Reference, axes: dict[str, int]) -> str:
    """One seed must give one draw, whatever the global streams are, and where it is timed another seed another."""
    for distribution in task.distributions:
        seed = secrets.randbits(62)
        with _watched_streams() as touched:
            one, same = (_inputs(task, reference, axes, distribution, seed) for _ in range(2))
        if touched() or not _same_inputs(one, same):
            return (
                f"make_inputs draws from the global random stream, or seeds it, under distribution {distribution!r}: "
                "draw everything from the generator it is given (generator=generator)"
            )
        others = (_inputs(task, reference, axes, distribution, secrets.randbits(62)) for _ in range(AGAIN))
        if distribution in _timed(task) and all(_same_inputs(one, other) for other in others):
            return (
                f"make_inputs gives the same content whatever the generator under distribution {distribution!r}, which "
                "is timed: a kernel may remember the answer, so draw it from the generator"
            )
    return ""


def _timed(task: Task) -> set[str]:
    first = next(iter(task.distributions))
    return {workload.distribution or first for workload in task.workloads}


def _inputs(task: Task, reference: Reference, axes: dict[str, int], distribution: str, seed: int) -> Values:
    return drawn(task, reference, axes, distribution, generator(seed)).inputs


@contextmanager
def _watched_streams() -> Generator[Callable[[], bool]]:
    """Put the global random streams where nobody left them; gives whether they were moved, and puts them back."""
    saved = torch.get_rng_state(), random.getstate()
    torch.manual_seed(secrets.randbits(62))
    random.seed(secrets.randbits(62))
    start = _streams()
    moved: list[bool] = []
    try:
        yield lambda: moved[0]
        moved.append(start != _streams())
    finally:
        torch.set_rng_state(saved[0])
        random.setstate(saved[1])


def _streams() -> tuple[bytes, object]:
    return bytes(torch.get_rng_state().tolist()), random.getstate()


def _same_inputs(one: Values, other: Values) -> bool:
    return all(_same(one[name], other[name]) for name in one)


def _same(one: object, other: object) -> bool:
    """Bit for bit: NaN is itself."""
    if isinstance(one, Tensor) and isinstance(other, Tensor):
        return one.shape == other.shape and torch.equal(_bytes(one), _bytes(other))
    return one == other


def _bytes(tensor: Tensor) -> Tensor:
    return tensor.contiguous().view(-1).view(torch.uint8)


def _too_easy(task: Task, reference: Reference, rounds: list[Case]) -> str:
    """The first answer that computes nothing and passes whatever is drawn."""
    for name in task.outputs:
        for what, answer in _answers(task, name):
            if _always_passes(task, reference, rounds, name, answer):
                return (
                    f"{what} passes every check of output {name} in every round: tighten the checks, choose a rule "
                    "that sees the difference (worst_row, window), or draw inputs for which the output differs from it"
                )
    return _not_asked(task, reference, rounds)


def _answers(task: Task, name: str) -> Iterator[tuple[str, Answer]]:
    """What a kernel could write without computing anything, in words and as a function."""
    spec = task.outputs[name]
    dtype = DTYPES[spec.dtype]
    for value in (0, 1):
        yield f"an output of nothing but {bool(value) if dtype is torch.bool else value}", _constant(value, name, dtype)
    if dtype.is_floating_point:
        yield "the mean of the expected values everywhere", lambda case: _mean(case.expected[name], dtype)
    elif dtype is not torch.bool:
        yield "the most common value everywhere", lambda case: _most_common(case.expected[name], dtype)
    for other, given in task.inputs.items():
        if given.shape == spec.shape and given.dtype == spec.dtype:
            yield f"a copy of input {other}", lambda case, other=other: case.inputs[other]


def _constant(value: int, name: str, dtype: torch.dtype) -> Answer:
    return lambda case: torch.full_like(case.expected[name], value, dtype=dtype)


def _mean(expected: Tensor, dtype: torch.dtype) -> Tensor:
    mean = expected[torch.isfinite(expected)].double().mean()
    return torch.where(torch.isfinite(expected), mean, expected.double()).to(dtype)


def _most_common(expected: Tensor, dtype: torch.dtype) -> Tensor:
    return torch.full_like(expected, int(expected.flatten().mode().values), dtype=dtype)


def _always_passes(task: Task, reference: Reference, rounds: list[Case], name: str, answer: Answer) -> bool:
    """Whether an answer passes the ready rounds and, if so, all that are drawn anew."""
    if not all(_passes(task, case, name, answer(case)) for case in rounds):
        return False
    fresh = (draw(task, reference, case.axes, case.distribution) for _ in range(AGAIN) for case in rounds)
    return all(_passes(task, case, name, answer(case)) for case in fresh)


def _passes(task: Task, case: Case, name: str, answer: Tensor) -> bool:
    """Whether `answer` passes all checks of output `name`."""
    scale = task.distributions[case.distribution].tolerance_scale
    checks = [check for check in task.checks if check.output == name]
    return first_bad(apply(check, case, answer, scale) for check in checks) is None


def _not_asked(task: Task, reference: Reference, rounds: list[Case]) -> str:
    """Whether what is expected of one draw passes as the answer to every other of its size: no input matters then."""
    for name, spec in task.outputs.items():
        dtype = DTYPES[spec.dtype]
        others = _others(task, reference, rounds)
        if all(_passes(task, case, name, other.expected[name].to(dtype)) for case, other in others):
            return (
                f"output {name} of one draw passes as the answer to any other: it does not depend on the inputs, "
                "or the tolerance is wider than what they change"
            )
    return ""


def _others(task: Task, reference: Reference, rounds: list[Case]) -> Iterator[tuple[Case, Case]]:
    """Each round with another of its size: a ready one first, then new draws, since luck must not refuse a task."""
    for case in rounds:
        same = [other for other in rounds if other is not case and other.axes == case.axes]
        yield from ((case, other) for other in same[:1])
    for _ in range(AGAIN):
        for case in rounds:
            yield case, draw(task, reference, case.axes, case.distribution)
