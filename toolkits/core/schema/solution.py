"""One implementation of a task: sources, how they are built, and what they are called by."""

import hashlib
import json
from typing import Literal

from pydantic import Field, model_validator

from toolkits.core.schema.record import Record

BindingName = Literal["torch", "tvm-ffi"]
"""How a C++ or CUDA function takes tensors instead of pointers."""
BOUND = ("cpp", "cuda")
"""Toolkits that know bindings."""


class Tunable(Record):
    """A compile-time parameter (`-DNAME=value`) that a search may vary."""

    values: list[int] = Field(min_length=1)
    default: int
    description: str = ""

    @model_validator(mode="after")
    def _default_is_a_value(self) -> "Tunable":
        if self.default not in self.values:
            raise ValueError(f"default {self.default} is not one of {self.values}")
        return self


class Launch(Record):
    """How one OpenCL kernel is launched. Sizes are expressions over the task's axes and the solution's tunables."""

    kernel: str
    global_size: list[str] = Field(min_length=1, max_length=3)
    """Work items in each dimension, all of them, such as `64*rows`."""
    local_size: list[str] = Field(default=[], max_length=3)
    """Work items of a group in each dimension; empty: OpenCL chooses."""


class Solution(Record):
    """One implementation of a task, identified by the hash of its content."""

    task: str
    toolkit: str
    entry_point: str
    """`file::function`."""
    plan_entry_point: str = ""
    """`file::function` of the plan, for a task that has such a step; empty: run does everything, and its plan is free.
    """
    destination_passing_style: bool = True
    """True: outputs are preallocated and passed last. False (python, or with a binding): the function returns them."""
    binding: BindingName | None = None
    """Of a cpp or cuda solution whose function takes `torch::Tensor` or `tvm::ffi::TensorView`; null: pointers."""
    description: str = ""
    flags: list[str] = []
    """Extra compiler flags."""
    targets: list[str] = []
    """GPU architectures to compile for, such as sm_90a or gfx942; empty: the toolkit's own choice."""
    launch: list[Launch] = []
    """Of an opencl solution: its kernels in order; each is passed inputs, outputs and the sizes that vary."""
    tunables: dict[str, Tunable] = {}
    parameters: dict[str, int] = {}
    """Chosen values of the tunables; a tunable that is absent has its default."""
    sources: dict[str, str]
    """Relative path -> text."""

    @property
    def id(self) -> str:
        """Content hash of everything that decides what runs; prose does not count."""
        prose = {"description", "tunables", "parameters"}
        if not self.plan_entry_point:  # ids from before there were plans stay what they are
            prose.add("plan_entry_point")
        prose |= {name for name in ("targets", "launch", "binding") if not getattr(self, name)}
        what = self.model_dump(exclude=prose) | {"chosen": self.chosen()}
        return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]

    @property
    def entry_file(self) -> str:
        return self.entry_point.split("::")[0]

    @property
    def entry_function(self) -> str:
        return self.entry_point.split("::")[1]

    @property
    def plan_function(self) -> str:
        """Empty where the solution has no plan."""
        return self.plan_entry_point.partition("::")[2]

    def chosen(self) -> dict[str, int]:
        """The value of every tunable."""
        return {name: tunable.default for name, tunable in self.tunables.items()} | self.parameters

    @model_validator(mode="after")
    def _consistent(self) -> "Solution":
        file, _, function = self.entry_point.partition("::")
        if not function or file not in self.sources:
            raise ValueError(f"entry_point {self.entry_point!r} must be `file::function` with a file of the solution")
        if self.plan_entry_point:
            self._check_plan(function)
        if self.binding and self.toolkit not in BOUND:
            raise ValueError(f"binding {self.binding!r} is for {' and '.join(BOUND)} solutions: leave it out")
        for name, value in self.parameters.items():
            if name not in self.tunables or value not in self.tunables[name].values:
                raise ValueError(f"parameter {name}={value} is not a declared value of a declared tunable")
        return self

    def _check_plan(self, run: str) -> None:
        file, _, function = self.plan_entry_point.partition("::")
        if not function or file not in self.sources:
            raise ValueError(
                f"plan_entry_point {self.plan_entry_point!r} must be `file::function` with a file of the solution"
            )
        if function == run:
            raise ValueError(f"plan_entry_point and entry_point both name {run!r}: plan and run are two functions")
