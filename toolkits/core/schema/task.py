"""What a kernel shall compute, and when it is right: a task and its workloads."""

from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from toolkits.core.schema.record import DType, Record


class Axis(Record):
    """A named dimension: constant for the task, or variable and given by each workload."""

    type: Literal["const", "var"]
    value: int | None = None
    """The size of a constant axis."""
    drawn: tuple[int, int] | None = None
    """Least and largest size of this axis in correctness rounds whose sizes the judge draws; null: as in the others."""
    description: str = ""

    @model_validator(mode="after")
    def _const_has_value(self) -> "Axis":
        if (self.type == "const") != (self.value is not None):
            raise ValueError("a const axis needs a value, a var axis has none")
        if self.drawn and (self.type == "const" or not 0 <= self.drawn[0] <= self.drawn[1]):
            raise ValueError("drawn: [least, largest] belongs to a var axis, and the least comes first")
        return self


class TensorSpec(Record):
    """An input or output: a dense row-major tensor, or a scalar passed by value when `shape` is null."""

    shape: list[str] | None
    """Axis names, or sums and products of axis names and integers such as `2*tokens-1`; null for a scalar."""
    dtype: DType
    description: str = ""


class Check(Record):
    """One acceptance rule of a task, applied to one output. All tolerances are scaled by the distribution.

    allclose   |got - want| <= tolerance + rtol * |want|; optional `rtol`, `matched_ratio` (share that must match)
    rel_l2     norm of the error over norm of the expected values; `fla` is the same under the field's name
    worst_row  rel_l2 of the worst row, `window` of the worst window of `size` tokens between `bounds` (an input)
    fib        the smaller of absolute and relative error; optional `matched_ratio`, 0.95 for MoE
    fa         largest error over that of the plain formula in low precision plus rounding; FlashAttention allows 2.
               `low_precision` names the formula's output among what the task's reference() returns
    argmin     cost of the pick over the least cost, less one; `costs` names what reference() returns [.., choices]
    identical  elements that differ in any bit from the expected value rounded to the output's dtype; the tolerance
               is 0. With `across`, the number of an axis: slices along it differ from the first (simulated ranks)

    That two runs on the same content give the same bytes is asked of every task that does not say `repeatable: false`.
    """

    output: str
    rule: Literal["allclose", "rel_l2", "worst_row", "window", "argmin", "fib", "fla", "fa", "identical"]
    tolerance: float = Field(ge=0)
    parameters: dict[str, float | int | str] = {}

    @model_validator(mode="after")
    def _rule_has_its_parameters(self) -> "Check":
        needed, optional = RULE_PARAMETERS[self.rule]
        if missing := needed - set(self.parameters):
            raise ValueError(f"rule {self.rule} needs the parameter {', '.join(sorted(missing))}")
        if unknown := set(self.parameters) - needed - optional:
            known = ", ".join(sorted(needed | optional)) or "none"
            raise ValueError(f"rule {self.rule} has no parameter {', '.join(sorted(unknown))}: it has {known}")
        if not 0.0 < float(self.parameters.get("matched_ratio", 1.0)) <= 1.0:
            raise ValueError("matched_ratio is a share: above 0, at most 1")
        if self.rule == "identical" and self.tolerance:
            raise ValueError("rule identical compares bits: its tolerance is 0, use allclose to allow a difference")
        return self


RULE_PARAMETERS: dict[str, tuple[set[str], set[str]]] = {
    "allclose": (set(), {"rtol", "matched_ratio"}),
    "rel_l2": (set(), set()),
    "worst_row": (set(), set()),
    "window": ({"bounds", "size"}, set()),
    "argmin": ({"costs"}, set()),
    "fib": (set(), {"matched_ratio"}),
    "fla": (set(), set()),
    "fa": ({"low_precision"}, set()),
    "identical": (set(), {"across"}),
}
"""What each rule must be told, and what it may be."""


class Distribution(Record):
    """A named way to draw inputs that exposes a class of bugs."""

    description: str
    tolerance_scale: float = 1.0
    """Every tolerance of the task is multiplied by this under the distribution."""


class Workload(Record):
    """One timed set of axes. `uuid` names it in every result."""

    uuid: str
    axes: dict[str, int]
    distribution: str = ""
    """Empty: the first distribution of the task."""


class Work(Record):
    """The least that one call must do, as expressions over the axes such as `4*rows*cols`: a bound on any algorithm."""

    bytes: str = "0"
    """Bytes that no kernel can leave unmoved: what must be read, once, and what must be written, once."""
    flops: str = "0"
    """Arithmetic operations that no kernel of the kind can leave out; a fused multiply-add counts as two."""


class Plan(Record):
    """What a solution may prepare before the rest of a call's inputs is known, as serving systems do once a batch."""

    inputs: list[str] = Field(min_length=1)
    """Names of the inputs that a plan may read; the others hold nothing of use until it has returned."""
    workspace: str = "0"
    """Bytes that a C++ plan may leave for its run, as an expression over the axes such as `8*rows+64`."""


class Task(Record):
    """A kernel to be written: interface, reference, workloads, acceptance rules and baselines."""

    name: str
    title: str
    op_type: str
    description: str
    """The mathematics, layouts and conventions: all that a kernel's author must know."""
    axes: dict[str, Axis]
    inputs: dict[str, TensorSpec]
    outputs: dict[str, TensorSpec]
    constraints: list[str] = []
    work: Work | None = None
    """What the physical floor of a latency is computed from; without it a task has none."""
    plan: Plan | None = None
    """The step that a solution may take before its run; without it a task has none."""
    checks: list[Check] = Field(min_length=1)
    distributions: dict[str, Distribution] = Field(min_length=1)
    correctness: list[dict[str, int]] = Field(min_length=1)
    """Axes of the correctness rounds; each is run under every distribution."""
    baselines: list[str] = Field(min_length=1)
    """Names under solutions/; the first is what a verdict compares with."""
    start: str
    """The solution that an evolution starts from."""
    variants: list[str] = []
    """Solutions with declared tunables, structurally different from each other."""
    call_timeout_s: float = 10.0
    """Wall limit of one call of a candidate, in seconds."""
    repeatable: bool = True
    """Whether two calls on the same content must give the same bytes; false where atomics may order sums anew."""
    reference_timeout_s: float = Field(default=60.0, gt=0)
    """Wall limit of one call of the task's own code (import, make_inputs, reference, refresh), in seconds."""
    lessons: list[str] = []
    """Slugs of lessons worth reading first."""
    workloads: list[Workload] = Field(min_length=1)
    folder: Path
    """Where task.yaml lies."""
    content_hash: str
    """Of task.yaml, reference.py and workloads.jsonl: the same task is the same hash."""

    def var_axes(self) -> list[str]:
        return [name for name, axis in self.axes.items() if axis.type == "var"]

    def sizes(self, axes: dict[str, int]) -> dict[str, int]:
        """All axis sizes for a workload's `axes`, constants included."""
        return {name: axis.value if axis.value is not None else axes[name] for name, axis in self.axes.items()}
